// SPDX-License-Identifier: Apache-2.0
/// Says which tokens of which requests the next pass over a model computes: the schedulers of
/// inference engines as state machines without time.
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
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "base/names.h"
#include "machine/memory/resident_set.h"
#include "serving/scheduler/kv_book.h"
#include "serving/scheduler/request.h"

namespace orrery::scheduler {

enum class Policy : std::uint8_t {
  vllm_v1,
  vllm_v0,
  sarathi,
  orca,
  static_batch,
  sglang,
  trtllm,
  max_utilization,
  mlfq
};
constexpr auto named_values(Policy) {
  return std::to_array<Named<Policy>>({
      {Policy::vllm_v1, "vllm_v1", "running requests first, then waiting ones, one token budget"},
      {Policy::vllm_v0, "vllm_v0", "whole prompts alone whenever some fit, else all decodes"},
      {Policy::sarathi, "sarathi", "all decodes, then chunks of prompts up to the budget"},
      {Policy::orca, "orca", "whole prompts beside decodes; blocks of the whole answer reserved"},
      {Policy::static_batch, "static_batch", "a batch runs until its longest answer ends"},
      {Policy::sglang, "sglang", "prompts alone whenever some fit by an estimate of the answers"},
      {Policy::trtllm, "trtllm", "as many requests as are sure to fit to their end (no evict)"},
      {Policy::max_utilization, "max_utilization", "as many as fit now; the last is paused"},
      {Policy::mlfq, "mlfq", "queues by what was computed, shorter ones first (FastServe)"},
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
  std::int64_t quantum = 1;      ///< decode ticks of the first queue (mlfq)
  double quantum_tokens = 256;   ///< of a prompt, that take as long as a decode tick (mlfq)
  std::int64_t adapters = 0;     ///< that fit the accelerator's memory; all others are copied to it
};

struct Scheduled {
  RequestIndex request = 0;
  std::int64_t tokens = 0;
  std::int64_t context = 0;  ///< computed before
  bool emits = false;        ///< its known tokens end here: one more is generated
  std::int64_t drafts = 0;   ///< of the tokens, guesses: those that are right are generated, too
};

/// A request that waits for blocks of its beginning from a lower tier, by their content.
struct Fetch {
  RequestIndex request = 0;
  std::vector<std::uint64_t> keys;
};

/// LowerTiers are what memory below the accelerator's has of known content.
class LowerTiers {
 public:
  virtual ~LowerTiers() = default;
  virtual bool holds(std::uint64_t key) const = 0;
};

struct Tick {
  std::vector<Scheduled> entries;
  std::vector<Fetch> fetches;  ///< that begin with the tick
  std::int64_t copied = 0;     ///< adapters that are copied before the tick
  std::int64_t tokens = 0;
  std::int64_t preempted = 0;  ///< requests that had to give their blocks back
  bool empty() const { return entries.empty(); }
};

struct Totals {
  std::int64_t scheduled_tokens = 0;
  std::int64_t cached_tokens = 0;
  std::int64_t lost_tokens = 0;  ///< computed, and needed again after a preemption
  std::int64_t preemptions = 0;
  std::int64_t ticks = 0;
  std::int64_t drafts = 0;           ///< decodes with guesses
  std::int64_t drafted_tokens = 0;   ///< guesses that were computed
  std::int64_t accepted_tokens = 0;  ///< of them, those that were right
  std::int64_t fetched_tokens = 0;   ///< of the cached ones, those of lower tiers
  std::int64_t copied_adapters = 0;

  /// Adds the totals of engines that step apart.
  Totals& operator+=(const Totals& other);
};

class Scheduler {
 public:
  Scheduler(const Limits& limits, KvBook book)
      : limits_(limits), book_(std::move(book)), adapters_(Bytes(limits.adapters)) {}
  virtual ~Scheduler() = default;
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  /// Joins the queue. Requires prompt >= 1, output >= 1 and can_ever_run().
  RequestIndex add(RequestSpec spec);
  /// Takes a request whose prompt another engine computes, and its first token: blocks for what the
  /// prefix cache does not have of it. Nothing if there are too few, or if one that was preempted
  /// waits for some. It is not in the queue before deliver().
  std::optional<RequestIndex> expect(RequestSpec spec);
  /// Delivers a request whose keys and values have come: it joins the queue with its prompt
  /// computed, before those that have no blocks.
  void deliver(RequestIndex index);
  /// Returns the number of tokens of a request's beginning that the cache has.
  std::int64_t cached_tokens(const RequestSpec& spec) const;
  /// From now on a request whose beginning `tiers` has more of than the cache waits for it: it is
  /// in no list from the tick that names it among its fetches until fetched().
  void fetch_from(const LowerTiers& tiers) { tiers_ = &tiers; }
  void fetched(RequestIndex index);
  /// Returns the contents of the blocks that others may want of a request that has ended.
  std::vector<std::uint64_t> keys_of(RequestIndex index) const;
  /// Frees the blocks of a request that has ended and keeps them.
  void let_go(RequestIndex index);
  /// Ends a request whose answer nobody wants any more: its blocks are free, and it is in no list.
  /// False: ticks in flight or a fetch have it. It computes nothing more, and a later call ends it
  /// unless complete() names it among the finished. Requires that it has not finished.
  bool abort(RequestIndex index);
  /// Returns whether the request fits into an engine that has nothing else to do.
  virtual bool can_ever_run(const RequestSpec& spec) const;

  /// Returns the next tick; empty when nothing can run now. Valid until the next call but one.
  Tick& schedule();
  /// Applies what the tick generated, in its order; `finished` are those that ended.
  void complete(const Tick& tick, std::vector<RequestIndex>& finished);

  /// Returns for how many ticks from here on schedule() would form the same tick again, one token
  /// of each running request, whatever joins the queue: nothing is admitted, preempted or finished.
  /// 0 where that is not known. With lookahead the tick in flight is such a tick, too.
  std::int64_t steady_ticks() const;
  /// Returns the number of blocks that the tick so many after the next one takes, of those that
  /// steady_ticks() has just counted.
  std::int64_t steady_blocks(std::int64_t tick) const {
    return fill_[static_cast<std::size_t>(tick % book_.block_size())];
  }
  /// Does what `ticks` times schedule() and complete() would. Requires ticks <= steady_ticks(). The
  /// tick in flight becomes the last one.
  void skip(std::int64_t ticks);
  /// Returns whether a request that joins now could run beside those that do.
  virtual bool open() const {
    return (waiting_.empty() || limits_.adapters > 0) &&
           std::ssize(running_) < limits_.max_num_seqs;
  }

  const RequestState& request(RequestIndex index) const {
    return requests_[static_cast<std::size_t>(index)];
  }
  const std::vector<RequestIndex>& running() const { return running_; }
  const std::deque<RequestIndex>& waiting() const { return waiting_; }
  const KvBook& book() const { return book_; }
  const Limits& limits() const { return limits_; }
  const Totals& totals() const { return totals_; }

 protected:
  virtual void form(Tick& tick) = 0;
  /// Returns the number of tokens that a request must have blocks for to be sure to go on once it
  /// is delivered.
  virtual std::int64_t tokens_to_expect(const RequestSpec& spec) const { return spec.prompt + 1; }
  /// Returns the same of one whose beginning is fetched.
  virtual std::int64_t tokens_to_fetch(const RequestState& request) const { return request.known; }
  /// Returns whether a queue that was not admitted from stays so while blocks only get fewer.
  virtual bool queue_waits_for_blocks() const { return true; }
  /// Applies what of the policy's own changes in so many steady ticks.
  virtual void on_skip(std::int64_t ticks) { static_cast<void>(ticks); }
  /// Returns for how many steady ticks the policy treats running requests alike.
  virtual std::int64_t most_steady() const { return std::numeric_limits<std::int64_t>::max(); }

  RequestState& state(RequestIndex index) { return requests_[static_cast<std::size_t>(index)]; }
  /// Returns the number of tokens that could be computed of a running request now, guesses for a
  /// decode included.
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
  /// Returns the first of the queue that may be admitted: those whose adapter has no room are
  /// passed over, those that begin to fetch leave the queue.
  std::optional<RequestIndex> next_waiting(Tick& tick);
  enum class Fetching : std::uint8_t { none, begun, no_room };
  Fetching begin_fetch(Tick& tick, RequestIndex index);
  bool adapter_fits(RequestIndex index) const;
  /// Preempts a request: its blocks are free, it starts again from the head of the queue, behind
  /// delivered ones.
  void preempt(Tick& tick, RequestIndex index);
  /// Gives back the same of one that waits with blocks which were delivered or fetched.
  void give_back(RequestIndex index);
  /// Returns the first of the queue that has no blocks.
  std::deque<RequestIndex>::iterator first_without_blocks();
  /// Moves a request from the queue to the running ones, with blocks for `reserved` tokens. Returns
  /// false if there are too few.
  bool admit(RequestIndex index, const Entry& entry, std::int64_t reserved);

  Limits limits_;
  KvBook book_;
  std::vector<RequestState> requests_;
  std::deque<RequestIndex> waiting_;
  std::vector<RequestIndex> running_;
  Totals totals_;
  bool admission_blocked_ = false;  ///< the last tick left a queue that it could not admit from

 private:
  /// Ends the run of a request, whose adapter may go.
  void leave(RequestState& request);

  memory::ResidentSet adapters_;  ///< of a byte each
  std::int64_t copied_ = 0;       ///< of the tick that is formed
  const LowerTiers* tiers_ = nullptr;
  mutable std::vector<std::int32_t> fill_;          ///< scratch of steady_ticks()
  std::vector<std::vector<RequestIndex>> by_room_;  ///< scratch of skip()
  std::array<Tick, 3> ticks_;
  std::size_t next_tick_ = 0;
};

std::unique_ptr<Scheduler> make_scheduler(Policy policy, const Limits& limits, KvBook book);

}  // namespace orrery::scheduler
