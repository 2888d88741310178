// SPDX-License-Identifier: Apache-2.0
/// Copies of the attention part that share the experts and step together (dp attention). Internal
/// to this folder.
#pragma once

#include <memory>
#include <vector>

#include "serving/client.h"
#include "serving/serve.h"

namespace orrery::serving {

/// A step begins when the last one is done everywhere; idle copies run it with no tokens of their
/// own. With lookahead the next tick of every copy is formed when a step begins, as by one engine.
/// Samples are of all copies.
class Lockstep {
 public:
  Lockstep(Run& run, step::StepCost& cost, const std::vector<requests::Request>& requests,
           Inbox& inbox, const ServeOptions& options);
  void go();

 private:
  struct Copy {
    std::unique_ptr<scheduler::Scheduler> scheduler;
    std::vector<std::size_t> served_of;  ///< by the scheduler's index: in the run's requests
    std::vector<Time> token;
    std::int64_t unfinished = 0;
  };

  using Ticks = std::vector<scheduler::Tick*>;  ///< by copy

  void enqueue(Time now);
  /// The next tick of every copy. Whether one of them has tokens.
  bool schedule(Ticks& ticks);
  /// Until one has tokens or nobody gives blocks back for others any more.
  bool schedule_what_waits(Ticks& ticks);
  /// Share of blocks in use.
  double used() const;
  void sample(Time until, double used);
  void finish(Copy& copy, const scheduler::Tick& tick, Time begin, Time end);
  Time duration(const Ticks& ticks);

  Run& run_;
  step::StepCost& cost_;
  const std::vector<requests::Request>& requests_;
  Inbox& inbox_;
  const ServeOptions& options_;
  std::vector<Copy> copies_;
  std::vector<std::size_t> number_of_;  ///< of the run's requests: in the list of requests
  std::vector<scheduler::RequestIndex> finished_;
  step::StepShape shape_;
};

}  // namespace orrery::serving
