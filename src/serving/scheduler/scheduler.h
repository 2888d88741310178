// SPDX-License-Identifier: Apache-2.0
/// Which tokens of which requests the next pass over a model computes: the schedulers of inference
/// engines as state machines without time.
///
///   schedule() forms a tick from what is known; complete(tick) tells what it generated. Without
///   lookahead a tick is completed before the next one is formed. With lookahead (asynchronous
///   scheduling) the next tick is formed while one is in flight, with placeholders for the tokens
///   that it will generate.
///
/// docs/models/serving.md states each policy and its source.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "base/names.h"
#include "serving/scheduler/kv_book.h"
#include "serving/scheduler/request.h"

namespace orrery::scheduler {

enum class Policy : std::uint8_t { vllm_v1, vllm_v0, sarathi, orca, static_batch, sglang, trtllm };
constexpr auto named_values(Policy) {
  return std::to_array<Named<Policy>>({
      {Policy::vllm_v1, "vllm_v1", "running requests first, then waiting ones, one token budget"},
      {Policy::vllm_v0, "vllm_v0", "whole prompts alone whenever some fit, else all decodes"},
      {Policy::sarathi, "sarathi", "all decodes, then chunks of prompts up to the budget"},
      {Policy::orca, "orca", "whole prompts beside decodes; blocks of the whole answer reserved"},
      {Policy::static_batch, "static_batch", "a batch runs until its longest answer ends"},
      {Policy::sglang, "sglang", "prompts alone whenever some fit by an estimate of the answers"},
      {Policy::trtllm, "trtllm", "as many requests as are sure to fit to their end (no evict)"},
  });
}

struct Limits {
  std::int64_t max_num_batched_tokens = 8192;
  std::int64_t max_num_seqs = 256;
  std::int64_t long_prefill_token_threshold = 0;  ///< of one prompt in one tick; 0: none
  bool chunked_prefill = true;                    ///< a prompt may be computed in parts
  bool reserve_full_isl = true;  ///< a prompt is admitted only if all of it has blocks
  bool lookahead = false;        ///< ticks are formed before the one in flight is completed
  double watermark = 0;          ///< share of the blocks kept free when admitting (vllm_v0)
  std::int64_t drafts = 0;       ///< tokens guessed for each decode; without lookahead
  double acceptance = 0;         ///< chance of a guess whose predecessors were right to be right
};

struct Scheduled {
  RequestIndex request = 0;
  std::int64_t tokens = 0;
  std::int64_t context = 0;  ///< computed before
  bool emits = false;        ///< its known tokens end here: one more is generated
  std::int64_t drafts = 0;   ///< of the tokens, guesses: those that are right are generated, too
};

struct Tick {
  std::vector<Scheduled> entries;
  std::int64_t tokens = 0;
  std::int64_t preempted = 0;  ///< requests that had to give their blocks back
  bool empty() const { return entries.empty(); }
};

struct Totals {
  std::int64_t scheduled_tokens = 0;
  std::int64_t cached_tokens = 0;
  std::int64_t lost_tokens = 0;
  std::int64_t preemptions = 0;
  std::int64_t ticks = 0;
  std::int64_t drafted_tokens = 0;   ///< guesses that were computed
  std::int64_t accepted_tokens = 0;  ///< of them, those that were right
};

class Scheduler {
 public:
  Scheduler(const Limits& limits, KvBook book) : limits_(limits), book_(std::move(book)) {}
  virtual ~Scheduler() = default;
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  /// Joins the queue. Requires prompt >= 1, output >= 1 and can_ever_run().
  RequestIndex add(RequestSpec spec);
  /// A request whose prompt another engine computes, and its first token: blocks for what the
  /// prefix cache does not have of it. Nothing if there are too few, or if one that was preempted
  /// waits for some. It is not in the queue before deliver().
  std::optional<RequestIndex> expect(RequestSpec spec);
  /// Its keys and values have come: it joins the queue with its prompt computed, before those that
  /// have no blocks.
  void deliver(RequestIndex index);
  /// Tokens of a request's beginning that the cache has.
  std::int64_t cached_tokens(const RequestSpec& spec) const;
  /// Frees the blocks of a request that has ended and keeps them.
  void let_go(RequestIndex index);
  /// Whether the request fits into an engine that has nothing else to do.
  virtual bool can_ever_run(const RequestSpec& spec) const;

  /// The next tick; empty when nothing can run now. Valid until the next call but one.
  Tick& schedule();
  /// Applies what the tick generated, in its order; `finished` are those that ended.
  void complete(const Tick& tick, std::vector<RequestIndex>& finished);

  /// For how many ticks from here on schedule() would form the same tick again, one token of each
  /// running request, whatever joins the queue: nothing is admitted, preempted or finished. 0 where
  /// that is not known. With lookahead the tick in flight is such a tick, too.
  std::int64_t steady_ticks() const;
  /// Does what `ticks` times schedule() and complete() would. Requires ticks <= steady_ticks(). The
  /// tick in flight becomes the last one.
  void skip(std::int64_t ticks);
  /// Whether a request that joins now could run beside those that do.
  bool open() const { return waiting_.empty() && running_size() < limits_.max_num_seqs; }

  const RequestState& request(RequestIndex index) const {
    return requests_[static_cast<std::size_t>(index)];
  }
  const std::vector<RequestIndex>& running() const { return running_; }
  const std::deque<RequestIndex>& waiting() const { return waiting_; }
  const KvBook& book() const { return book_; }
  const Limits& limits() const { return limits_; }
  const Totals& totals() const { return totals_; }
  std::int64_t running_size() const { return static_cast<std::int64_t>(running_.size()); }

 protected:
  virtual void form(Tick& tick) = 0;
  /// Tokens that a request must have blocks for to be sure to go on once it is delivered.
  virtual std::int64_t tokens_to_expect(const RequestSpec& spec) const { return spec.prompt + 1; }
  /// Whether a queue that was not admitted from stays so while blocks only get fewer.
  virtual bool queue_waits_for_blocks() const { return true; }
  /// What of the policy's own changes in so many steady ticks.
  virtual void on_skip(std::int64_t ticks) { static_cast<void>(ticks); }

  RequestState& state(RequestIndex index) { return requests_[static_cast<std::size_t>(index)]; }
  const RequestState& state(RequestIndex index) const {
    return requests_[static_cast<std::size_t>(index)];
  }
  /// Tokens that could be computed of a running request now, guesses for a decode included.
  std::int64_t ready_tokens(const RequestState& request) const;
  void put(Tick& tick, RequestIndex index, std::int64_t tokens);
  /// A request of the queue: what it need not compute, having it or finding it in the cache.
  struct Entry {
    KvBook::Hit hit;
    std::int64_t computed = 0;
    std::int64_t missing = 0;  ///< known tokens that are to be computed
    std::int64_t blocks = 0;   ///< that it has or finds
  };
  Entry entry_of(RequestIndex index) const;
  /// How many of a decode's guesses are right: the same whatever runs beside it.
  std::int64_t accepted(RequestIndex index, std::int64_t drafts) const;
  /// Takes it back out of a tick.
  void withdraw(Tick& tick, RequestIndex index);
  /// Its blocks are free, it starts again from the head of the queue, behind delivered ones.
  void preempt(Tick& tick, RequestIndex index);
  /// The first of the queue that has no blocks.
  std::deque<RequestIndex>::iterator first_without_blocks();
  /// From the head of the queue to the running ones, with blocks for `reserved` tokens.
  bool admit(RequestIndex index, const Entry& entry, std::int64_t reserved);

  Limits limits_;
  KvBook book_;
  std::vector<RequestState> requests_;
  std::deque<RequestIndex> waiting_;
  std::vector<RequestIndex> running_;
  Totals totals_;
  bool admission_blocked_ = false;  ///< the last tick left a queue that it could not admit from

 private:
  mutable std::vector<std::int32_t> fill_;          ///< scratch of steady_ticks()
  std::vector<std::vector<RequestIndex>> by_room_;  ///< scratch of skip()
  std::array<Tick, 3> ticks_;
  std::size_t next_tick_ = 0;
};

std::unique_ptr<Scheduler> make_scheduler(Policy policy, const Limits& limits, KvBook book);

}  // namespace orrery::scheduler
