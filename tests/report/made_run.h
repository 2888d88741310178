// SPDX-License-Identifier: Apache-2.0
/// A run whose figures are put in by hand, so that a report's text can be checked by eye.
#pragma once

#include <cstddef>

#include "study/run.h"
#include "workload/plan/axes.h"

namespace orrery::testing {

/// Two stages; 100 ms: 25 forward, 50 backward, 10 exposed tp, 15 bubble; 5 ms of dp hidden.
inline study::Run made_run() {
  study::Run run;
  run.name = run.model.name = "tiny";
  run.model.max_positions = 128;
  run.machine.name = "two-boxes";
  run.machine.device.name = "Box";
  run.plan.tp = 2;
  run.plan.pp = 2;
  run.plan.global_batch = 8;
  run.plan.stage_layers = "3,1";
  run.devices = 4;
  run.workload =
      plan::step_workload({{{plan::Axis::tp, 2}, {plan::Axis::dp, 1}, {plan::Axis::pp, 2}}});
  const simulate::TimeCategories categories(run.workload);
  simulate::Breakdown breakdown;
  breakdown.time.resize(categories.size());
  breakdown.time[categories.of(graph::PhaseIndex(plan::StepPhase::forward))] = 25_ms;
  breakdown.time[categories.of(graph::PhaseIndex(plan::StepPhase::backward))] = 50_ms;
  breakdown.time[categories.of(graph::CategoryIndex(plan::Exposed::tp))] = 10_ms;
  breakdown.time[categories.bubble()] = 15_ms;
  breakdown.hidden.resize(run.workload.groups.size());
  breakdown.hidden[*graph::GroupIndex(plan::Axis::dp)] = 5_ms;
  run.timeline.categories = categories;
  run.timeline.breakdown = breakdown;
  run.timeline.step_time = 100_ms;
  run.timeline.critical_rank = 3;
  run.timeline.events = 2000;
  run.timeline.fold = {.ranks = 4, .simulated = 2, .reasons = {"dp: the ring is partial"}};
  run.capacity = 10_GiB;
  run.memory.resize(2);
  run.memory[0].capacity = run.memory[1].capacity = 10_GiB;
  run.memory[0][plan::MemoryCategory::parameters] = 4_GiB;
  run.memory[0][plan::MemoryCategory::activations] = 3_GiB;
  run.memory[1][plan::MemoryCategory::parameters] = 12_GiB;
  run.fits = false;
  run.tokens_per_s = 10240;
  run.model_flops_per_device = FlopRate(120e12);
  run.hardware_flops_per_device = FlopRate(160e12);
  run.mfu = 0.375;
  run.hfu = 0.5;
  run.wall_s = 0.001;
  run.passes = {{"pipeline", 0.0002}, {"simulate", 0.0005}};
  return run;
}

}  // namespace orrery::testing
