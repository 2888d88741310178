// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "machine/device_groups.h"
#include "task.h"

namespace orrery::testing {

/// Four H100 and four of another sort, on the network of dgx-h100.
inline full::Task mixed_task(const compute::Device& other) {
  full::Task mixed = task("gpt2", "dgx-h100", 8, 64, 1024);
  mixed.machine.parts = {{"h", 4, mixed.machine.device}, {"other", 4, other}};
  mixed.machine.device = machine::mean_device(mixed.machine.parts);
  return mixed;
}

inline compute::Device slowed(double factor) {
  compute::Device device = machine::load_machine("dgx-h100")->device;
  device.name = "slow";
  for (FlopRate& peak : device.peak) {
    peak = peak * factor;
  }
  device.memory[0].bandwidth = device.memory[0].bandwidth * factor;
  return device;
}

inline full::Options quick() {
  full::Options options;
  options.top = 2;
  options.most_estimates = 200;
  options.most_simulations = 24;
  return options;
}

}  // namespace orrery::testing
