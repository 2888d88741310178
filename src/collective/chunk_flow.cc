// SPDX-License-Identifier: Apache-2.0
#include "collective/chunk_flow.h"

#include <algorithm>
#include <queue>
#include <set>
#include <tuple>
#include <utility>

namespace orrery::collective {
namespace {

class Flow {
 public:
  Flow(std::span<const ChunkPath> chunks, int dimensions, ChunkQueue order, const PhaseModel& model)
      : chunks_(chunks),
        order_(order),
        model_(model),
        next_phase_(chunks.size()),
        waiting_(static_cast<std::size_t>(dimensions)),
        serving_(static_cast<std::size_t>(dimensions)) {
    flow_.busy.resize(static_cast<std::size_t>(dimensions));
    flow_.chunk_end.resize(chunks.size());
  }

  ChunkFlow run() {
    for (std::size_t chunk = 0; chunk < chunks_.size(); ++chunk) {
      arrive(chunk);
    }
    serve_idle();
    while (!events_.empty()) {
      now_ = std::get<0>(events_.top());
      while (!events_.empty() && std::get<0>(events_.top()) == now_) {
        const auto [when, chunk, dimension] = events_.top();
        events_.pop();
        if (dimension == kThrough) {
          arrive(chunk);
        } else {
          serving_[dimension] = false;
        }
      }
      serve_idle();
    }
    return std::move(flow_);
  }

 private:
  static constexpr std::size_t kThrough = ~std::size_t{0};
  /// An event is a time, a chunk, and the dimension that becomes idle, or kThrough where the
  /// chunk's phase is over.
  using Event = std::tuple<Time, std::size_t, std::size_t>;
  /// A waiting chunk has its size (smallest first) or 0, its place in the line, and its number.
  using Waiting = std::tuple<Bytes, std::size_t, std::size_t>;

  void arrive(std::size_t chunk) {
    flow_.end = std::max(flow_.end, now_);
    if (next_phase_[chunk] == chunks_[chunk].size()) {
      flow_.chunk_end[chunk] = now_;
      return;
    }
    const ChunkPhase& phase = chunks_[chunk][next_phase_[chunk]];
    const Bytes key = order_ == ChunkQueue::smallest_first ? phase.size : Bytes(0);
    waiting_[static_cast<std::size_t>(phase.dimension)].insert({key, arrivals_++, chunk});
  }

  void serve_idle() {
    for (std::size_t d = 0; d < waiting_.size(); ++d) {
      if (serving_[d] || waiting_[d].empty()) {
        continue;
      }
      const std::size_t chunk = std::get<2>(*waiting_[d].begin());
      waiting_[d].erase(waiting_[d].begin());
      const PhaseCost cost = model_(chunks_[chunk][next_phase_[chunk]++]);
      serving_[d] = true;
      flow_.busy[d] += cost.busy;
      events_.push({now_ + cost.busy, chunk, d});
      events_.push({now_ + cost.busy + cost.latency, chunk, kThrough});
    }
  }

  std::span<const ChunkPath> chunks_;
  ChunkQueue order_;
  const PhaseModel& model_;
  std::vector<std::size_t> next_phase_;     ///< by chunk
  std::vector<std::set<Waiting>> waiting_;  ///< by dimension
  std::vector<bool> serving_;               ///< by dimension
  std::size_t arrivals_ = 0;
  Time now_{0};
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  ChunkFlow flow_;
};

}  // namespace

ChunkFlow run_chunks(std::span<const ChunkPath> chunks, int dimensions, ChunkQueue queue,
                     const PhaseModel& model) {
  return Flow(chunks, dimensions, queue, model).run();
}

}  // namespace orrery::collective
