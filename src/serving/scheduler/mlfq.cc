// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <compare>
#include <limits>
#include <set>
#include <utility>
#include <vector>

#include "serving/scheduler/policies.h"

namespace orrery::scheduler {
namespace {

/// FastServe's skip-join multi-level feedback queue (Wu et al., arXiv 2305.05920). A tick goes to
/// the requests of the highest queues, in each by the time of joining it. Queue j has a quantum of
/// `quantum` 2^j decode ticks; a request joins the first queue whose quantum its prompt fits, a
/// prompt of n tokens counting n / quantum_tokens ticks (at least one), and falls a queue when its
/// quantum is used. One that is not chosen keeps its blocks until a higher one needs them: then
/// the lowest gives its back and is computed again, as far as the cache has lost it.
///
/// Ignores: promotion of requests that starve; keys and values that are brought back before they
/// are wanted (they are found, or fetched from a lower tier, when the request is chosen).
class Mlfq : public Scheduler {
 public:
  using Scheduler::Scheduler;

  bool open() const override { return true; }  // a new request may be the first of all

 protected:
  void form(Tick& tick) override {
    take_in();
    std::int64_t budget = limits_.max_num_batched_tokens;
    std::vector<std::pair<RequestIndex, std::int64_t>> chosen;
    for (auto at = order_.begin();
         at != order_.end() && budget > 0 &&
         static_cast<std::int64_t>(chosen.size()) < limits_.max_num_seqs;) {
      const RequestIndex index = at->request;
      if (state(index).finished) {
        at = order_.erase(at);
        continue;
      }
      ++at;
      if (state(index).fetching > 0 || !(state(index).running || adapter_fits(index)) ||
          (state(index).running && ready_tokens(state(index)) == 0)) {
        continue;  // in flight
      }
      const std::int64_t tokens = tokens_with_blocks(tick, index, budget);
      if (tokens > 0) {
        put(tick, index, tokens);
        budget -= tokens;
        chosen.emplace_back(index, tokens);
      } else if (state(index).fetching == 0) {
        break;  // no lower one gets what this one lacks
      }
    }
    for (const auto& [index, tokens] : chosen) {
      use(index, ticks_of(tokens));
    }
    // The order in which steady ticks give blocks.
    std::sort(running_.begin(), running_.end(),
              [&](RequestIndex a, RequestIndex b) { return key_of(a) < key_of(b); });
  }
  bool queue_waits_for_blocks() const override { return false; }
  std::int64_t most_steady() const override {  // nobody falls
    std::int64_t most = std::ssize(running_) > limits_.max_num_seqs ? 0 : kTick << 40U;
    for (const RequestIndex index : running_) {
      const Level& level = level_of(index);
      most = std::min(most, quantum_of(level.queue) - level.used - 1);
    }
    return most / kTick;
  }
  void on_skip(std::int64_t ticks) override {
    for (const RequestIndex index : running_) {
      levels_[static_cast<std::size_t>(index)].used += ticks * kTick;
    }
  }

 private:
  struct Level {
    int queue = 0;
    std::int64_t joined = 0;
    std::int64_t used = 0;  ///< of its quantum
  };
  struct Key {
    int queue = 0;
    std::int64_t joined = 0;
    RequestIndex request = 0;
    auto operator<=>(const Key&) const = default;
  };

  /// A decode tick: prompts take parts of one, which add up alike in any order.
  static constexpr std::int64_t kTick = 1024;
  static constexpr int kLastQueue = 20;  ///< with a quantum longer than any answer

  std::int64_t quantum_of(int queue) const {
    return (limits_.quantum * kTick) << std::min(queue, kLastQueue);
  }
  std::int64_t ticks_of(std::int64_t tokens) const {
    const double ticks = std::max(1.0, static_cast<double>(tokens) / limits_.quantum_tokens);
    return std::llround(std::min(ticks, 1e9) * static_cast<double>(kTick));
  }
  const Level& level_of(RequestIndex index) const {
    return levels_[static_cast<std::size_t>(index)];
  }
  Key key_of(RequestIndex index) const {
    return {level_of(index).queue, level_of(index).joined, index};
  }

  /// Requests that have come since the last tick.
  void take_in() {
    while (levels_.size() < requests_.size()) {
      const auto index = static_cast<RequestIndex>(levels_.size());
      Level level{.queue = 0, .joined = ++joined_};
      while (level.queue < kLastQueue &&
             quantum_of(level.queue) < ticks_of(state(index).spec.prompt)) {
        ++level.queue;
      }
      levels_.push_back(level);
      order_.insert(key_of(index));
    }
  }

  /// Tokens that it can compute in this tick, for which it has blocks now; 0: none.
  std::int64_t tokens_with_blocks(Tick& tick, RequestIndex index, std::int64_t budget) {
    for (;;) {
      RequestState& request = state(index);
      const Fetching fetching = request.running ? Fetching::none : begin_fetch(tick, index);
      if (fetching == Fetching::begun) {
        return 0;
      }
      const Entry entry = request.running ? Entry{} : entry_of(index);
      const std::int64_t missing = request.running ? ready_tokens(request) : entry.missing;
      if (missing > budget && !limits_.chunked_prefill) {
        return 0;
      }
      const std::int64_t tokens = std::min(missing, budget);
      if (fetching == Fetching::none &&
          (request.running ? book_.reserve(request, index, request.computed + tokens)
                           : admit(index, entry, request.known))) {
        return tokens;
      }
      const RequestIndex lowest = lowest_with_blocks(index);
      if (lowest == index) {
        return 0;
      }
      if (state(lowest).running) {
        preempt(tick, lowest);
      } else {
        give_back(lowest);
      }
    }
  }

  /// Returns the lowest request below `than`, running or delivered and waiting; `than` itself when
  /// there is none.
  RequestIndex lowest_with_blocks(RequestIndex than) {
    RequestIndex lowest = than;
    const auto look = [&](RequestIndex index) {
      lowest = key_of(lowest) < key_of(index) ? index : lowest;
    };
    std::for_each(running_.begin(), running_.end(), look);
    std::for_each(waiting_.begin(), first_without_blocks(), look);
    return lowest;
  }

  void use(RequestIndex index, std::int64_t ticks) {
    Level& level = levels_[static_cast<std::size_t>(index)];
    level.used += ticks;
    if (level.used >= quantum_of(level.queue)) {
      order_.erase(key_of(index));
      level = {.queue = level.queue + 1, .joined = ++joined_};
      order_.insert(key_of(index));
    }
  }

  std::vector<Level> levels_;  ///< by request
  std::set<Key> order_;        ///< of what is not known to have ended
  std::int64_t joined_ = 0;
};

}  // namespace

std::unique_ptr<Scheduler> make_mlfq(const Limits& limits, KvBook book) {
  return std::make_unique<Mlfq>(limits, std::move(book));
}

}  // namespace orrery::scheduler
