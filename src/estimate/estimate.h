// SPDX-License-Identifier: Apache-2.0
/// Plan -> step time without events.
///
///   1. outline()        the plan's templates as lists of steps, and its issue lists: those that
///                       simulate runs, without making nodes of them
///   2. time             every distinct step: kernels from the device, collectives and messages
///   from
///                       where the plan's order puts them on the network (timed_workload.h)
///   3. map              every template once for all plans that have it (template_tables.h), as a
///                       matrix over (max, +) on the moments when the device, the host and the
///                       other streams of a stage become free (pass_map.h)
///   4. replay           the issue lists of one rank per stage, in the order of their dependencies,
///                       until they repeat (replay.h)
///
/// No schedule has a formula here: one of uniform stages without messages comes out as
/// (m + p - 1)(F + B) because its issue list does. What is priced is kept for the next plan.
///
/// Groups that cross one another's links on lines of devices are run by events (event_run.h).
///
/// Ignores:  ranks of one stage that differ. Kernels slowed by communication of other instances, in
///           first order (replay.h). Faults.
/// Source:   max-plus algebra: Baccelli et al. 1992; docs/models/estimate.md measures how near it
/// is.
#pragma once

#include <memory>

#include "machine/machine.h"
#include "workload/memory/footprint.h"
#include "workload/plan/plan.h"
#include "workload/zoo/model.h"

namespace orrery::estimate {

struct Estimate {
  Time step_time{0};
  /// Parts of step_time, in the stage that is busiest; they sum to it.
  Time compute{0};  ///< kernels alone
  Time exposed{0};  ///< within passes: collectives, own sends, waits for the host, slower kernels
  Time bubble{0};   ///< pipeline fill and drain, waits for messages
  Time tail{0};     ///< after the last pass: the end of the step

  /// Of several stages that are run by events: what events say at the least, by maps. Tested, not
  /// proved (docs/models/estimate.md).
  Time at_least{0};
  bool rough = false;  ///< far beyond the limit: what maps say, where events would tell

  bool is_far_beyond(Time limit) const { return at_least > limit; }
};

/// Estimates plans of one model on one machine. Not thread-safe: it keeps what it has measured. One
/// estimator per thread.
class Estimator {
 public:
  /// The machine may have an open outer dimension; it is cut to each plan's devices.
  Estimator(zoo::Model model, machine::Machine machine);
  ~Estimator();
  Estimator(Estimator&&) noexcept;
  Estimator& operator=(Estimator&&) noexcept;

  /// Every plan that simulate takes. Mistakes: those of lower(), devices that the machine cannot
  /// have, number formats and memory tiers that it has not.
  ///
  /// Of several stages that are run by events (event_run.h), and that maps put far beyond `limit`,
  /// what maps say: who looks for faster plans need not know more. Depends on nothing that was
  /// asked before.
  Result<Estimate> estimate(const plan::Plan& plan, Time limit = Time::max());

  /// footprint::fullest(). Mistakes: the same.
  Result<footprint::Fullest> memory(const plan::Plan& plan);

  /// Never above the simulated time (lower_bound.h). Mistakes: the same.
  Result<Time> lower_bound(const plan::Plan& plan);

 private:
  class Memo;
  std::unique_ptr<Memo> memo_;
};

}  // namespace orrery::estimate
