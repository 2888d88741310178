// SPDX-License-Identifier: Apache-2.0
/// The loop over engine steps. Internal to this folder.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "serving/client.h"
#include "serving/intake.h"
#include "serving/serve.h"

namespace orrery::serving {

/// All but `visible` of layers without windows is counted where `windows` asks for it.
void fill_shape(const scheduler::Tick& tick, const std::vector<std::int64_t>& windows,
                step::StepShape& shape);

/// One engine of dp = 1. Fills the run as it goes; finish() adds what the scheduler has counted.
class Loop {
 public:
  Loop(Run& run, step::StepCost& cost, const std::vector<requests::Request>& requests, Inbox& inbox,
       const ServeOptions& options);

  /// Takes the steps that begin before `horizon`; a step in flight there has all its effects, of
  /// which none is before. Requires that the inbox has what reaches it before then.
  void run_until(Time horizon);
  /// When the next step begins, as far as is known; Time::max(): nothing to do before poke().
  Time clock() const { return stalled_ ? Time::max() : now_; }
  /// Tells the loop that what it can do may have changed at `at`.
  void poke(Time at);
  /// run_until() returns after the step in flight.
  void halt() { horizon_ = Time(0); }
  void finish();

  /// From now on requests end with their first token, and those that have others keep their blocks.
  void only_prefill() { only_prefill_ = true; }
  /// For a request whose prompt another engine computes: Scheduler::expect(). `served` has what is
  /// known of it, its first token too. Its number in the run.
  std::optional<std::size_t> expect(std::size_t number, const requests::Request& request,
                                    const Served& served);
  scheduler::Scheduler& scheduler() { return *scheduler_; }
  /// KvTiers::share().
  void share(const std::shared_ptr<KvStore>& store) { tiers_->share(store); }

 private:
  struct Flight {
    scheduler::Tick tick;
    Time begin{0};
    Time end{0};
  };

  void go_synchronous();
  void go_asynchronous();
  void go_pipelined();

  /// Puts what has reached the engine until `now` into its queue, and what has been fetched.
  void enqueue(Time now);
  /// The next tick, whose fetches begin now.
  scheduler::Tick& schedule();
  /// The next arrival, or end of a copy between tiers.
  Time next_event() const;
  /// To the next event. False: there is none.
  bool wait();

  void shape_of(const scheduler::Tick& tick);
  /// Splits a tick into what each of `different_` computes of it.
  void split_by_model(const scheduler::Tick& tick);
  /// Accelerator and host, after so many adapters have been copied.
  Time duration(std::int64_t copied);
  /// Adds a request's next token.
  void add_token(const scheduler::Scheduled& entry, Time end, bool beside);
  void mark_scheduled(const scheduler::Tick& tick, Time begin);
  void complete(const scheduler::Tick& tick, Time end);
  void record(Time begin, Time end);
  void sample(Time until);
  /// From `at` on so many blocks are in use.
  void hold(Time at, std::int64_t blocks);
  /// Advances over steps that only decode, from now on; `shape_` is of the first of them. Returns
  /// how many.
  std::int64_t decode_run(std::int64_t most);
  /// All of the running requests decode one token.
  bool only_decodes(const scheduler::Tick& tick) const;
  void add_gap(Time gap, std::int64_t count);

  Run& run_;
  step::StepCost& cost_;
  const std::vector<requests::Request>& requests_;
  Inbox& inbox_;
  const ServeOptions& options_;
  std::unique_ptr<scheduler::Scheduler> scheduler_;
  std::optional<KvTiers> tiers_;
  Time now_{0};  ///< the next step begins; pp > 1: the first stage is free
  Time horizon_ = Time::max();
  bool stalled_ = false;
  bool only_prefill_ = false;
  scheduler::Tick* current_ = nullptr;   ///< of the next step, where it is formed ahead
  std::deque<Flight> flights_;           ///< pp > 1
  Time last_end_{0};                     ///< of the step before; pp > 1
  std::vector<std::size_t> number_of_;   ///< by the scheduler's index: in the list of requests
  std::vector<Time> token_;              ///< by the scheduler's index: its last
  std::vector<int> preempted_;           ///< by the scheduler's index: until that token
  std::vector<std::int32_t> different_;  ///< adapters of a tick
  std::vector<scheduler::RequestIndex> finished_;
  step::StepShape shape_;
  std::vector<step::StepShape> parts_;  ///< of it, by whole model that computes them
  std::vector<std::int64_t> growing_;   ///< by window: decodes that see one key more in every step
  Time next_sample_{0};
  /// Blocks x picoseconds: exact, so that skipping and stepping add up to the same.
  using BlockTime = __int128;
  BlockTime held_time_ = 0;
  std::int64_t held_ = 0;  ///< blocks in use
  Time held_since_{0};
  std::size_t ended_ = 0;
};

}  // namespace orrery::serving
