// SPDX-License-Identifier: Apache-2.0
#include "serving/scheduler/policies.h"

#include <algorithm>
#include <cmath>

namespace orrery::scheduler {
namespace {

/// vLLM's V1 scheduler (vllm/v1/core/sched/scheduler.py as of 0.19): running requests in order,
/// whatever they need, the last one giving way where blocks are short; then, if nobody had to, the
/// queue from its head. `decodes_first` is Sarathi-Serve's order: all decodes before any prompt.
class VllmV1 : public Scheduler {
 public:
  VllmV1(const Limits& limits, KvBook book, bool decodes_first)
      : Scheduler(limits, std::move(book)), decodes_first_(decodes_first) {}

 protected:
  void form(Tick& tick) override {
    std::int64_t budget = limits_.max_num_batched_tokens;
    if (decodes_first_) {
      std::stable_partition(running_.begin(), running_.end(), [&](RequestIndex index) {
        const RequestState& request = state(index);
        return request.computed >= request.spec.prompt;
      });
    }
    // 1. What runs. The list shrinks from its end by preemptions.
    for (std::size_t i = 0; i < running_.size() && budget > 0; ++i) {
      const RequestIndex index = running_[i];
      const std::int64_t tokens = capped(ready_tokens(state(index)), budget);
      if (tokens == 0) {
        continue;
      }
      bool enough = false;
      while (!(enough = book_.reserve(state(index), index, state(index).computed + tokens))) {
        const RequestIndex victim = running_.back();
        const std::int64_t before = tick.tokens;
        preempt(tick, victim);
        budget += before - tick.tokens;
        if (victim == index) {
          break;
        }
      }
      if (!enough) {
        break;
      }
      put(tick, index, tokens);
      budget -= tokens;
    }
    // 2. The queue, unless somebody has just been put back into it.
    while (tick.preempted == 0 && budget > 0 && std::ssize(running_) < limits_.max_num_seqs) {
      const auto next = next_waiting(tick);
      if (!next) {
        break;
      }
      const RequestIndex index = *next;
      const Entry entry = entry_of(index);
      if (!limits_.chunked_prefill && entry.missing > budget) {
        break;
      }
      const std::int64_t tokens = capped(entry.missing, budget);
      const std::int64_t fits = book_.free() - entry.hit.resting;
      if (limits_.reserve_full_isl &&
          book_.blocks_of(state(index).spec, state(index).known) - entry.blocks > fits) {
        admission_blocked_ = true;
        break;
      }
      if (!admit(index, entry, entry.computed + tokens)) {
        admission_blocked_ = true;
        break;
      }
      put(tick, index, tokens);
      budget -= tokens;
    }
    admission_blocked_ = admission_blocked_ || std::ssize(running_) >= limits_.max_num_seqs;
  }

 private:
  std::int64_t capped(std::int64_t tokens, std::int64_t budget) const {
    const std::int64_t threshold = limits_.long_prefill_token_threshold;
    return std::min({tokens, threshold > 0 ? threshold : tokens, budget});
  }

  bool decodes_first_;
};

/// vLLM's V0 scheduler and its like: a tick of whole prompts whenever some can be admitted, else
/// one of decodes.
class PrefillFirst : public Scheduler {
 public:
  using Scheduler::Scheduler;

  bool can_ever_run(const RequestSpec& spec) const override {
    return spec.prompt + spec.output - 1 <= limits_.max_num_batched_tokens &&
           book_.blocks_of(spec, spec.prompt + spec.output - 1) + kept_free() <= book_.blocks();
  }

 protected:
  void form(Tick& tick) override {
    std::int64_t budget = limits_.max_num_batched_tokens;
    while (std::ssize(running_) < limits_.max_num_seqs) {
      const auto next = next_waiting(tick);
      if (!next) {
        break;
      }
      const RequestIndex index = *next;
      const Entry entry = entry_of(index);
      if (entry.missing > budget) {
        break;
      }
      const std::int64_t known = state(index).known;
      const std::int64_t need = book_.blocks_of(state(index).spec, known) - entry.blocks;
      if (book_.free() - entry.hit.resting - need < kept_free() || !admit(index, entry, known)) {
        break;
      }
      put(tick, index, entry.missing);
      budget -= entry.missing;
    }
    admission_blocked_ = !waiting_.empty() && tick.empty();
    if (!tick.empty()) {
      return;
    }
    for (std::size_t i = 0; i < running_.size(); ++i) {
      const RequestIndex index = running_[i];
      const std::int64_t tokens = ready_tokens(state(index));
      if (tokens == 0) {
        continue;
      }
      bool enough = false;
      while (!(enough = book_.reserve(state(index), index, state(index).computed + tokens))) {
        const RequestIndex victim = running_.back();
        preempt(tick, victim);
        if (victim == index) {
          break;
        }
      }
      if (!enough) {
        break;
      }
      put(tick, index, tokens);
    }
  }

 private:
  std::int64_t kept_free() const {
    return static_cast<std::int64_t>(
        std::floor(limits_.watermark * static_cast<double>(book_.blocks())));
  }
};

/// Iteration-level scheduling with every request's blocks reserved to its end, so that nobody ever
/// gives way: Orca (Yu et al., OSDI 2022), and TensorRT-LLM's GUARANTEED_NO_EVICT, whose prompts
/// may be computed in parts. `drains`: new ones only when all others have ended (static batching),
/// which run until the longest answer ends.
class Reserving : public Scheduler {
 public:
  Reserving(const Limits& limits, KvBook book, bool drains)
      : Scheduler(limits, std::move(book)), drains_(drains) {}

  bool can_ever_run(const RequestSpec& spec) const override {
    return book_.blocks_of(spec, spec.prompt + spec.output - 1) <= book_.blocks() &&
           (limits_.chunked_prefill || spec.prompt <= limits_.max_num_batched_tokens);
  }

 protected:
  std::int64_t tokens_to_expect(const RequestSpec& spec) const override {
    return spec.prompt + spec.output - 1;
  }
  std::int64_t tokens_to_fetch(const RequestState& request) const override {
    return tokens_to_expect(request.spec);
  }
  void form(Tick& tick) override {
    std::int64_t budget = limits_.max_num_batched_tokens;
    admitting_ = !drains_ || running_.empty() || (admitting_ && prefilling());
    for (const RequestIndex index : running_) {
      const std::int64_t ready = ready_tokens(state(index));
      if (ready == 1 || (limits_.chunked_prefill && ready > 0 && budget > 0)) {
        const std::int64_t tokens = std::min(ready, std::max<std::int64_t>(1, budget));
        put(tick, index, tokens);
        budget -= tokens;
      }
    }
    while (admitting_ && budget > 0 && std::ssize(running_) < limits_.max_num_seqs) {
      const auto next = next_waiting(tick);
      if (!next) {
        break;
      }
      const RequestIndex index = *next;
      const RequestState& request = state(index);
      const Entry entry = entry_of(index);
      if (!limits_.chunked_prefill && entry.missing > budget) {
        break;
      }
      if (!admit(index, entry, request.spec.prompt + request.spec.output - 1)) {
        admission_blocked_ = true;
        break;
      }
      const std::int64_t tokens = std::min(entry.missing, budget);
      put(tick, index, tokens);
      budget -= tokens;
    }
    admission_blocked_ =
        admission_blocked_ || !admitting_ || std::ssize(running_) >= limits_.max_num_seqs;
  }

 private:
  bool prefilling() const {
    return std::any_of(running_.begin(), running_.end(), [&](RequestIndex index) {
      const RequestState& request = requests_[static_cast<std::size_t>(index)];
      return request.computed < request.spec.prompt;
    });
  }

  bool drains_;
  bool admitting_ = true;
};

/// SGLang's scheduler (python/sglang/srt/managers/schedule_policy.py, recalled): prompts before
/// decodes, admitted while the free tokens cover them and a guess of what all running requests
/// will still generate: their remaining tokens, at most 4096, times a ratio that starts at 0.7 and
/// falls to a tenth of one over 600 decode ticks. Where the guess was too low, the requests with
/// the fewest generated tokens go back to the queue.
class Sglang : public Scheduler {
 public:
  using Scheduler::Scheduler;

 protected:
  void form(Tick& tick) override {
    if (admit_prompts(tick)) {
      return;
    }
    while (!fits_next()) {
      retract(tick);
    }
    for (const RequestIndex index : running_) {
      const std::int64_t tokens = ready_tokens(state(index));
      if (tokens > 0 && book_.reserve(state(index), index, state(index).computed + tokens)) {
        put(tick, index, tokens);
      }
    }
    decay();
  }
  bool queue_waits_for_blocks() const override { return false; }
  void on_skip(std::int64_t ticks) override {
    for (; ticks > 0; --ticks) {
      decay();
    }
  }

 private:
  static constexpr double kStart = 0.7;
  static constexpr double kLeast = 0.14;
  static constexpr double kDecayTicks = 600;
  static constexpr std::int64_t kMostGuessed = 4096;

  void decay() { ratio_ = std::max(kStart * kLeast, ratio_ - kStart * (1 - kLeast) / kDecayTicks); }

  static std::int64_t remaining(const RequestState& request) {
    return std::min(kMostGuessed, request.spec.output - request.promised());
  }

  bool admit_prompts(Tick& tick) {
    std::int64_t budget = limits_.max_num_batched_tokens;
    for (const RequestIndex index : running_) {  // the prompt that was cut
      const std::int64_t ready = ready_tokens(state(index));
      if (ready > 1 && budget > 0) {
        const std::int64_t tokens = std::min(ready, budget);
        if (book_.reserve(state(index), index, state(index).computed + tokens)) {
          put(tick, index, tokens);
          budget -= tokens;
        }
      }
    }
    double promised = 0;
    for (const RequestIndex index : running_) {
      promised += static_cast<double>(remaining(state(index))) * ratio_;
    }
    while (budget > 0 && std::ssize(running_) < limits_.max_num_seqs) {
      const auto next = next_waiting(tick);
      if (!next) {
        break;
      }
      const RequestIndex index = *next;
      const RequestState& request = state(index);
      const Entry entry = entry_of(index);
      const double spare =
          static_cast<double>((book_.free() - entry.hit.resting) * book_.block_size()) - promised;
      const std::int64_t fixed =
          request.blocks.empty() ? request.spec.fixed_blocks * book_.block_size() : 0;
      const auto wanted = static_cast<double>(entry.missing + remaining(request) + fixed);
      if ((wanted > spare && !running_.empty()) ||
          (!limits_.chunked_prefill && entry.missing > budget)) {
        break;
      }
      const std::int64_t tokens = std::min(entry.missing, budget);
      if (!admit(index, entry, request.known)) {
        break;
      }
      promised += static_cast<double>(remaining(request));
      put(tick, index, tokens);
      budget -= tokens;
    }
    return !tick.empty();
  }

  bool fits_next() const {
    std::int64_t need = 0;
    for (const RequestIndex index : running_) {
      const RequestState& request = requests_[static_cast<std::size_t>(index)];
      need += book_.blocks_of(request.computed + ready_tokens(request)) -
              static_cast<std::int64_t>(request.blocks.size());
    }
    // The last one gives way only to those that hold blocks in the queue.
    const bool others =
        !waiting_.empty() && !requests_[static_cast<std::size_t>(waiting_.front())].blocks.empty();
    return need <= book_.free() || running_.empty() || (running_.size() == 1 && !others);
  }

  /// The one with the fewest generated tokens, of equals that with the longest prompt.
  void retract(Tick& tick) {
    const auto victim =
        std::min_element(running_.begin(), running_.end(), [&](RequestIndex a, RequestIndex b) {
          const RequestState& left = state(a);
          const RequestState& right = state(b);
          return left.emitted() != right.emitted() ? left.emitted() < right.emitted()
                                                   : left.spec.prompt > right.spec.prompt;
        });
    preempt(tick, *victim);
    double out = 0;
    double most = 1;
    for (const RequestIndex index : running_) {
      out += static_cast<double>(state(index).emitted());
      most += static_cast<double>(state(index).spec.output);
    }
    constexpr double kRetractSteps = 20;
    ratio_ =
        std::min(1.0, (out + kRetractSteps * static_cast<double>(std::ssize(running_))) / most);
  }

  double ratio_ = kStart;
};

}  // namespace

std::unique_ptr<Scheduler> make_scheduler(Policy policy, const Limits& limits, KvBook book) {
  Limits of_policy = limits;
  switch (policy) {
    case Policy::vllm_v1:
      return std::make_unique<VllmV1>(limits, std::move(book), false);
    case Policy::sarathi:
      return std::make_unique<VllmV1>(limits, std::move(book), true);
    case Policy::vllm_v0:
      return std::make_unique<PrefillFirst>(limits, std::move(book));
    case Policy::orca:
      of_policy.chunked_prefill = false;
      return std::make_unique<Reserving>(of_policy, std::move(book), false);
    case Policy::trtllm:
      return std::make_unique<Reserving>(limits, std::move(book), false);
    case Policy::static_batch:
      return std::make_unique<Reserving>(limits, std::move(book), true);
    case Policy::sglang:
      return std::make_unique<Sglang>(limits, std::move(book));
    case Policy::max_utilization:
      return make_max_utilization(limits, std::move(book));
    case Policy::mlfq:
      return make_mlfq(limits, std::move(book));
  }
  return nullptr;
}

}  // namespace orrery::scheduler
