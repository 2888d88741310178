// SPDX-License-Identifier: Apache-2.0
/// The loop over the steps of one engine. Internal to this folder.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "serving/client.h"
#include "serving/copy.h"
#include "serving/intake.h"
#include "serving/measures.h"
#include "serving/serve.h"

namespace orrery::serving {

/// An engine of any degrees, whose clock it moves from step to step. Its rule of turns follows from
/// how it is set (driver_turns.cc):
///
///   synchronous   schedule, compute, complete
///   ahead         the ticks of the next step are formed when a step begins
///   pipelined     up to pp steps under way, one per stage
///
/// A step is one tick of every copy. It begins when some copy has something to compute and ends for
/// all at once (copy.h); copies of adapters before it take as long as those of the copy with most.
/// A request goes to the copy with the fewest unfinished ones, the first of equals.
///
/// Where one copy does nothing but decode, steps that are alike are taken at once (`skip`), with
/// the times of steps one by one.
class Driver {
 public:
  /// Fills `run` as it goes; finish() adds what the schedulers have counted.
  Driver(Run& run, step::StepCost& cost, const std::vector<requests::Request>& requests,
         Inbox& inbox, const ServeOptions& options);

  /// Takes the steps that begin before `horizon`; a step in flight there has all its effects, of
  /// which none is before. Requires that the inbox has what reaches it before then.
  void run_until(Time horizon);
  /// Returns when the next step begins or, of a pipeline, ends, as far as is known; Time::max():
  /// nothing to do before poke().
  Time clock() const;
  /// Says that what it can do may have changed at `at`.
  void poke(Time at);
  /// run_until() returns after the step under way.
  void halt() { horizon_ = Time(0); }
  void finish();

  /// Ends a request of the run, also one that will have this number, that nobody waits for: at `at`
  /// or, where a step under way or a fetch has it, with that.
  void abort(std::size_t served, Time at);
  /// Returns the times of a request of the run, with what its scheduler has counted.
  Served served(std::size_t number) const;
  /// Returns the requests and blocks of all copies.
  Measures::State load() const;

  /// Returns whether a request is short enough to be served.
  bool takes(const requests::Request& request) const;
  /// Returns the number of tokens of its prompt that the cache of the copy which would get it has.
  std::int64_t cached_tokens(const requests::Request& request) const;
  /// Calls KvTiers::share() of every copy.
  void share(const std::shared_ptr<KvStore>& store, Bytes block);

  // Of pools for prompts and for decoding; requests by their number in the run:
  /// From now on requests end with their first token, and those that have others keep their blocks
  /// until let_go().
  void only_prefill() { only_prefill_ = true; }
  void let_go(std::size_t served);
  /// Reserves blocks for a request whose prompt another engine computes (Scheduler::expect()).
  /// `served` has what is known of it, its first token too. Returns the request's number, or
  /// nothing where there are no blocks now.
  std::optional<std::size_t> expect(std::size_t number, const requests::Request& request,
                                    const Served& served);
  /// Says that the keys and values of a request have come.
  void deliver(std::size_t served);
  /// So many more (or fewer) transfers share links of a dimension with this engine (KvTransfers).
  void meet(int dimension, std::int64_t more);
  /// Returns which part of its last step, alone, its collectives were on these links; 0: it waits.
  double collective_share(int dimension) const;
  std::size_t copy_of(std::size_t served) const { return places_[served].copy; }
  const scheduler::RequestState& state_of(std::size_t served) const;

 private:
  struct Flight {
    std::vector<scheduler::Tick> ticks;
    Time end{0};
  };
  /// Says where a request is.
  struct Place {
    std::size_t number = 0;  ///< in the list of requests
    std::size_t copy = 0;
    scheduler::RequestIndex index = 0;
  };

  void go_synchronous();
  void go_ahead();
  void go_pipelined();
  /// The first of the steps under way ends.
  void land();

  /// Puts what has reached the engine until `now` into a queue, and what has been fetched.
  void enqueue(Time now);
  /// Puts one into the queue of a copy, or refuses it.
  void take(const Delivery& delivery);
  void end_copies(Copy& copy, Time now);
  /// Ends those of abort() that nothing has any more.
  void end_aborted(Time now);
  /// Adds a request that its scheduler has just taken.
  void add(std::size_t number, std::size_t copy, const Served& served, Time token);
  /// Makes the next tick of every copy, whose fetches begin now, and tells what became of blocks.
  /// Returns whether one of them has tokens.
  bool schedule(Ticks& ticks);
  /// Returns the next arrival, or end of a copy between tiers.
  Time next_event() const;
  /// Waits for the next event. Returns false if there is none.
  bool wait();

  /// Returns the time of accelerator and host, of `shapes_`, after so many adapters have been
  /// copied; collectives that meet() transfers take twice as long.
  Time duration(std::int64_t copied);
  void add_token(Copy& copy, const scheduler::Scheduled& entry, Time end, bool beside);
  void mark_scheduled(const Ticks& ticks, Time begin);
  void complete(const Ticks& ticks, Time end);
  void end_requests(Copy& copy, Time end);
  void release(Copy& copy, scheduler::RequestIndex index);
  void record(Time begin, Time end);
  /// Advances over steps that only decode, from now on; `shapes_` is of the first of them. Returns
  /// how many. Requires one copy.
  std::int64_t decode_run(std::int64_t most);

  Run& run_;
  step::StepCost& cost_;
  const std::vector<requests::Request>& requests_;
  Inbox& inbox_;
  const ServeOptions& options_;
  std::vector<Copy> copies_;
  std::vector<Place> places_;  ///< by number in the run
  StepShapes shapes_;
  Measures measures_;
  Time now_{0};  ///< the next step begins; pp > 1: the first stage is free
  Time horizon_ = Time::max();
  bool stalled_ = false;  ///< nothing to do before poke()
  bool waiting_ = false;  ///< pp > 1: nothing to begin before a step ends or something comes
  bool only_prefill_ = false;
  std::vector<std::int64_t> met_;  ///< transfers, by dimension
  Time alone_{0};                  ///< of the last step, without them
  Ticks ticks_;
  Ticks next_;                  ///< of the step after, where they are formed ahead
  bool formed_ = false;         ///< `ticks_` were formed ahead
  std::deque<Flight> flights_;  ///< pp > 1; as many as stages: each has a step
  Time last_end_{0};            ///< of the step before; pp > 1
  std::int64_t steps_ = 0;
  HeldRequests held_;
  std::size_t ended_ = 0;
  std::vector<std::size_t> aborting_;  ///< numbers in the run
};

}  // namespace orrery::serving
