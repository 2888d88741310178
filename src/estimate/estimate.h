// SPDX-License-Identifier: Apache-2.0
/// Plan -> the step time as an interval, and the memory of the fullest stage, without lowering the
/// plan.
///
///   1. blocks     every kind of block is lowered and timed once for all plans that have it
///                 (block_costs.h), what a stage holds once for all that hold it alike
///                 (state_costs.h)
///   2. schedule   the pipeline's pieces of work with these times (schedule_run.h)
///   3. interval   a time that no run is faster than, a value, and how far runs may be above it
///                 (step_interval.h)
///
/// Where devices or shares of the batch differ between ranks, every class of ranks that have both
/// alike has an interval, and the longest counts: all meet at the end of the step.
///
/// Ignores:  faults; what step_interval.h ignores.
/// Source:   docs/models/estimate.md measures how near it is.
#pragma once

#include <memory>

#include "estimate/step_interval.h"
#include "machine/machine.h"
#include "workload/memory/footprint.h"
#include "workload/plan/plan.h"
#include "workload/zoo/model.h"

namespace orrery::estimate {

/// Estimates plans of one model on one machine. Not thread-safe: it keeps what it has measured. One
/// estimator per thread. An answer depends on nothing that was asked before.
class Estimator {
 public:
  /// The machine may have an open outer dimension; it is cut to each plan's devices.
  Estimator(const zoo::Model& model, const machine::Machine& machine);
  ~Estimator();
  Estimator(Estimator&&) noexcept;
  Estimator& operator=(Estimator&&) noexcept;

  /// Returns the interval of any plan that simulate takes. Mistakes: those of check() and
  /// check_machine(), devices that the machine cannot have, steps beyond the range of Time.
  Result<Interval> interval(const plan::Plan& plan);

  /// Returns Interval::least alone. Mistakes: the same.
  Result<Time> lower_bound(const plan::Plan& plan);

  /// Returns the fewest local_steps whose compute hides the all-reduce of co2 (round_interval.h); 1
  /// of plans without rounds. Mistakes: the same.
  Result<std::int64_t> hiding_local_steps(const plan::Plan& plan);

  /// Returns footprint::fullest(). Mistakes: the same.
  Result<footprint::Fullest> memory(const plan::Plan& plan);

 private:
  class Memo;
  std::unique_ptr<Memo> memo_;
};

}  // namespace orrery::estimate
