// SPDX-License-Identifier: Apache-2.0
/// `auto` on a machine of several sorts of devices: work in proportion to what each device does.
///
///   t_d        of a device: kernels of a layer, forward and backward, of one rank
///              (machine/compute)
///   layers     each to the stage that then computes least long (layers x t_d; embedding and head
///              with their own kernels), every part of the model at least one where it needs one
///   shares     each microbatch to the replica that then computes least long, its slowest stage;
///              replicas on equal devices alike where the batch allows it
///
/// Either is the fastest split of the busiest stage's or replica's kernels where all layers are
/// alike. Both together: first layers, of stages on the slowest devices that each has.
/// Ignores: communication, the fill of the pipeline; memory (check_fits says what does not fit).
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "base/units.h"
#include "machine/machine.h"
#include "workload/plan/plan.h"
#include "workload/zoo/model.h"

namespace orrery::parallel {

/// Returns the plan with numbers instead of `auto` in stage_layers and batch_shares, where its
/// devices differ; else with even shares. The machine may be larger than the plan. A plan that
/// cannot run is left as it is: check() says why.
plan::Plan in_proportion(plan::Plan plan, const zoo::Model& model, const machine::Machine& machine);

/// Kernels of one rank for one microbatch, forward and backward, on one sort of devices.
struct PartTimes {
  Time embedding{0};
  Time head{0};
  Time layer{0};  ///< the mean
};

/// in_proportion() of many plans of one model on one machine that differ in degrees, microbatch,
/// schedule and exchanges alone: what kernels take is found once for all that share it.
class Proportion {
 public:
  /// Makes a Proportion, which both must outlive.
  Proportion(const zoo::Model& model, const machine::Machine& machine)
      : model_(model), machine_(machine) {}

  plan::Plan of(plan::Plan plan);

 private:
  using Key = std::array<std::int64_t, 7>;
  const std::vector<PartTimes>& times(const plan::Plan& plan, const machine::Machine& fitted);

  const zoo::Model& model_;
  const machine::Machine& machine_;
  std::map<Key, std::vector<PartTimes>> times_;
};

}  // namespace orrery::parallel
