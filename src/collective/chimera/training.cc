// SPDX-License-Identifier: Apache-2.0
#include "collective/chimera/training.h"

#include <algorithm>
#include <array>

#include "workload/plan/schedule.h"

namespace orrery::chimera {
namespace {

using flit::Cycle;
using layout::Pair;

constexpr std::int32_t kDpGroups = 2;  // of a stage with experts

/// Returns the extents of the first dp group, as wide as the others.
Extents dp_group(Extents extents, std::int32_t groups) {
  for (std::int32_t& extent : extents) {
    const std::int32_t cuts = extent % groups == 0 ? groups : 1;
    extent /= cuts;
    groups /= cuts;
  }
  return extents;
}

/// StageTime is what a stage does, in the order of its program: on its arrays or on its links.
class StageTime {
 public:
  void compute(std::size_t chunk, Cycle cycles) { add(chunk, cycles, arrays_); }
  void communicate(std::size_t chunk, Cycle cycles) { add(chunk, cycles, links_); }
  /// Computes on the arrays, beside what the chunk does next.
  void compute_concurrently(std::size_t chunk, Cycle cycles) {
    beside_[chunk] = arrays_ = std::max(arrays_, done_[chunk]) + cycles;
  }
  void join() {
    const Cycle all = std::max({done_[0], done_[1], beside_[0], beside_[1]});
    done_ = beside_ = {all, all};
  }
  Cycle end() const { return std::max(done_[0], done_[1]); }

 private:
  void add(std::size_t chunk, Cycle cycles, Cycle& resource) {
    done_[chunk] = resource = std::max(resource, done_[chunk]) + cycles;
  }
  Cycle arrays_ = 0;
  Cycle links_ = 0;
  std::array<Cycle, 2> done_{};  ///< by chunk
  std::array<Cycle, 2> beside_{};
};

class Trainer {
 public:
  Trainer(const Training& training, const Network& network, Prices& prices, bool fused)
      : training_(training),
        network_(network),
        prices_(prices),
        fused_(fused),
        shape_(shape_of(training.model)),
        stages_(place_stages(training.topology, training.extents, training.stages)) {}

  TrainingCycles run() {
    TrainingCycles cycles;
    if (training_.pass != Pass::end_to_end) {
      return {one_way(training_.pass), segment(training_.pass)};
    }
    cycles.whole = pipeline();
    cycles.segment = segment(Pass::forward) + segment(Pass::backward);
    return cycles;
  }

 private:
  std::int64_t blocks() const { return shape_.layers / layers_of_block(shape_); }
  std::int64_t blocks_of(std::size_t stage) const {
    const auto p = static_cast<std::int64_t>(stages_.size());
    return blocks() / p + (static_cast<std::int64_t>(stage) < blocks() % p ? 1 : 0);
  }
  std::int32_t dp() const { return shape_.has_experts ? kDpGroups : 1; }
  std::int64_t chunk_tokens(Pass pass) const {
    return pass == Pass::chunked ? training_.tokens / 2 : training_.tokens;
  }

  Cycle communication(const std::vector<Communication>& list, const Block& stage) {
    Cycle sum = 0;
    for (const Communication& one : list) {
      sum += prices_.of(network_, one.operation,
                        one.in_dp_group ? dp_group(stage.extents, dp()) : stage.extents, one.bytes);
    }
    return sum;
  }

  /// Returns the time of one block of layers.
  Cycle block_time(Pass pass, const Block& stage) {
    const LayerStudy study{training_.model, training_.pair, chunk_tokens(pass),
                           stage.ranks(),   dp(),           training_.top_k};
    std::vector<Sublayer> sublayers = block_of(study, fused_);
    StageTime time;
    if (pass == Pass::forward) {
      for (const Sublayer& sublayer : sublayers) {
        time.communicate(0, communication(sublayer.before, stage));
        time.compute(0, sublayer.forward);
        time.communicate(0, communication(sublayer.after, stage));
      }
      return time.end();
    }
    std::reverse(sublayers.begin(), sublayers.end());
    const std::size_t chunks = pass == Pass::chunked ? 2 : 1;
    for (std::size_t i = 0; i < sublayers.size(); ++i) {
      for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
        time.communicate(chunk, communication(sublayers[i].backward_before, stage));
        time.compute(chunk, sublayers[i].input_gradient);
      }
      for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
        time.compute_concurrently(chunk, sublayers[i].weight_gradient);
        time.communicate(chunk, communication(sublayers[i].backward_after, stage));
      }
      if (i % 2 == 1) {  // a layer has two sublayers
        time.join();
      }
    }
    return time.end();
  }

  /// Returns the time in which a chunk's activations reach the next stage, or its gradients come
  /// back from there. Of two chunks it is the last one's; the other moves beside work.
  Cycle move(Pass pass, std::size_t stage) {
    const bool forward = pass == Pass::forward;
    const Block& from = stages_[forward ? stage : stage + 1];
    const Block& to = stages_[forward ? stage + 1 : stage];
    const Bytes m(4 * chunk_tokens(pass) * shape_.hidden);
    if (training_.pair != Pair::tp_pp) {
      return prices_.of(network_, Operation::send, from, to, m);
    }
    return prices_.of(network_, Operation::many_to_many, from, to, m) +
           (fused_ ? 0 : prices_.of(network_, Operation::all_gather, to.extents, m));
  }

  Cycle one_way(Pass pass) {
    Cycle sum = 0;
    for (std::size_t stage = 0; stage < stages_.size(); ++stage) {
      sum += blocks_of(stage) * block_time(pass, stages_[stage]);
      sum += stage + 1 < stages_.size() ? move(pass, stage) : 0;
    }
    return sum;
  }

  Cycle segment(Pass pass) {
    const auto p = static_cast<std::int64_t>(stages_.size());
    const Cycle block = block_time(pass, stages_[0]);
    if (p < 2) {
      return blocks() * block;
    }
    const std::size_t last = p > 2 ? 1 : 0;
    return p * block + (blocks() - p) * block + move(pass, 0) * (p - 2) + move(pass, last);
  }

  /// Progress holds what has ended when, while microbatches pass.
  struct Progress {
    using ByStage = std::vector<std::vector<Cycle>>;
    std::array<ByStage, 2> ends;     ///< forward, backward; by stage and microbatch
    std::vector<std::int64_t> next;  ///< by stage: piece of its list
    std::vector<Cycle> free;         ///< by stage
  };
  static constexpr Cycle kNotYet = -1;

  /// The stage's next piece of work; false if it still waits for another stage.
  bool advance(const plan::PipelineSlot& slot, std::size_t s, Progress& progress) {
    const bool forward = slot.direction == plan::Direction::forward;
    const Pass pass = forward ? Pass::forward : Pass::backward;
    const auto i = static_cast<std::size_t>(slot.microbatch);
    Progress::ByStage& ends = progress.ends[forward ? 0 : 1];
    Cycle ready = 0;
    if (forward ? s > 0 : s + 1 < stages_.size()) {
      ready = ends[forward ? s - 1 : s + 1][i];
      if (ready == kNotYet) {
        return false;
      }
      ready += move(pass, forward ? s - 1 : s);
    }
    progress.free[s] =
        std::max(progress.free[s], ready) + blocks_of(s) * block_time(pass, stages_[s]);
    ends[s][i] = progress.free[s];
    ++progress.next[s];
    return true;
  }

  /// Forward and backward of all microbatches, each stage by its 1F1B list.
  Cycle pipeline() {
    const plan::PipelineShape shape{.stages = static_cast<std::int64_t>(stages_.size()),
                                    .microbatches = training_.microbatches};
    Progress progress;
    progress.ends.fill(Progress::ByStage(
        stages_.size(),
        std::vector<Cycle>(static_cast<std::size_t>(training_.microbatches), kNotYet)));
    progress.next.resize(stages_.size());
    progress.free.resize(stages_.size());
    for (bool moves = true; moves;) {
      moves = false;
      for (std::size_t s = 0; s < stages_.size(); ++s) {
        const auto stage = static_cast<std::int64_t>(s);
        while (progress.next[s] < plan::slot_count(shape, stage) &&
               advance(plan::slot(shape, stage, progress.next[s]), s, progress)) {
          moves = true;
        }
      }
    }
    return *std::max_element(progress.free.begin(), progress.free.end());
  }

  const Training& training_;
  const Network& network_;
  Prices& prices_;
  bool fused_;
  ModelShape shape_;
  std::vector<Block> stages_;
};

}  // namespace

TrainingRun run_training(const Training& training, Prices& prices) {
  const Network network(training.topology, training.extents);
  return {Trainer(training, network, prices, false).run(),
          Trainer(training, network, prices, true).run()};
}

}  // namespace orrery::chimera
