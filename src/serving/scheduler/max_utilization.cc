// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "serving/scheduler/policies.h"

namespace orrery::scheduler {
namespace {

/// TensorRT-LLM's MAX_UTILIZATION (capacityScheduler.h, microBatchScheduler.h): a capacity
/// scheduler gives blocks for the next step to requests in order of their arrival, of a prompt for
/// all of it; where they are short the last request that has begun is paused: its blocks are free,
/// it starts again. Only if nobody was, the queue is admitted from, as far as there are blocks and
/// seats. Of those, a micro batch takes all decodes, then prompts, in parts, up to the budget.
///
/// Ignores: blocks for two steps ahead with overlapped execution.
class MaxUtilization : public Scheduler {
 public:
  using Scheduler::Scheduler;

 protected:
  void form(Tick& tick) override {
    give_blocks(tick);
    std::int64_t budget = limits_.max_num_batched_tokens;
    for (const bool decodes : {true, false}) {
      for (const RequestIndex index : running_) {
        const std::int64_t ready = ready_tokens(state(index));
        if (ready > 0 && budget > 0 && is_decode(index) == decodes) {
          const std::int64_t tokens = std::min(ready, budget);
          put(tick, index, tokens);
          budget -= tokens;
        }
      }
    }
    while (tick.preempted == 0 && budget > 0 && std::ssize(running_) < limits_.max_num_seqs) {
      const auto next = next_waiting(tick);
      if (!next) {
        break;
      }
      const Entry entry = entry_of(*next);
      if (!limits_.chunked_prefill && entry.missing > budget) {
        break;
      }
      if (!admit(*next, entry, state(*next).known)) {
        admission_blocked_ = true;
        break;
      }
      const std::int64_t tokens = std::min(entry.missing, budget);
      put(tick, *next, tokens);
      budget -= tokens;
    }
    admission_blocked_ = admission_blocked_ || std::ssize(running_) >= limits_.max_num_seqs;
  }

 private:
  bool is_decode(RequestIndex index) const {
    return request(index).computed >= request(index).spec.prompt;
  }

  /// Gives the blocks of the next step to all that run.
  void give_blocks(Tick& tick) {
    for (std::size_t i = 0; i < running_.size(); ++i) {
      const RequestIndex index = running_[i];
      const std::int64_t tokens = state(index).computed + ready_tokens(state(index));
      while (!book_.reserve(state(index), index, tokens)) {
        const RequestIndex last = running_.back();
        preempt(tick, last);
        if (last == index) {
          return;
        }
      }
    }
  }
};

}  // namespace

std::unique_ptr<Scheduler> make_max_utilization(const Limits& limits, KvBook book) {
  return std::make_unique<MaxUtilization>(limits, std::move(book));
}

}  // namespace orrery::scheduler
