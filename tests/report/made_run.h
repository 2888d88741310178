// SPDX-License-Identifier: Apache-2.0
/// A run whose figures are put in by hand, so that a report's text can be checked by eye.
#pragma once

#include <cstddef>

#include "study/run.h"

namespace orrery::testing {

/// Two stages; 100 ms: 25 forward, 50 backward, 10 exposed tp, 15 bubble; 5 ms of dp hidden.
inline Run made_run() {
  Run run;
  run.model.name = "tiny";
  run.model.max_positions = 128;
  run.machine.name = "two-boxes";
  run.machine.device.name = "Box";
  run.plan.tp = 2;
  run.plan.pp = 2;
  run.plan.global_batch = 8;
  run.plan.stage_layers = "3,1";
  run.devices = 4;
  Breakdown& breakdown = run.timeline.breakdown;
  const auto set = [&](TimeCategory category, Time time) {
    breakdown.time[static_cast<std::size_t>(category)] = time;
  };
  set(TimeCategory::forward, 25_ms);
  set(TimeCategory::backward, 50_ms);
  set(TimeCategory::tp_exposed, 10_ms);
  set(TimeCategory::bubble, 15_ms);
  breakdown.hidden[static_cast<std::size_t>(Axis::dp)] = 5_ms;
  run.timeline.step_time = 100_ms;
  run.timeline.critical_rank = 3;
  run.timeline.events = 2000;
  run.timeline.fold = {.ranks = 4, .simulated = 2, .reasons = {"dp: the ring is partial"}};
  run.capacity = 10_GiB;
  run.memory.resize(2);
  run.memory[0][MemoryCategory::parameters] = 4_GiB;
  run.memory[0][MemoryCategory::activations] = 3_GiB;
  run.memory[1][MemoryCategory::parameters] = 12_GiB;
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
