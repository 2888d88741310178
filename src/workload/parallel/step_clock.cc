// SPDX-License-Identifier: Apache-2.0
#include "workload/parallel/step_clock.h"

#include <algorithm>
#include <vector>

#include "machine/device_groups.h"
#include "workload/plan/model_parts.h"

namespace orrery::parallel {
namespace {

compute::Load load_of_blocks(const std::vector<BlockWork>& work,
                             const std::vector<plan::BlockKind>& kinds,
                             const compute::Device& device) {
  std::vector<compute::Load> by_kind;
  for (const BlockWork& block : work) {
    compute::Load& load = by_kind.emplace_back();
    for (const graph::Operator& kernel : block.kernels) {
      load += compute::load_of(kernel, device);
    }
  }
  compute::Load sum;
  for (const plan::BlockKind kind : kinds) {
    sum += by_kind[kind];
  }
  return sum;
}

bool states_power(const machine::Machine& machine) {
  return machine.device.power_model.known() ||
         std::ranges::any_of(machine.parts, [](const machine::DeviceGroup& part) {
           return part.device.power_model.known();
         });
}

}  // namespace

Energy set_clocks(machine::Machine& machine, const zoo::Model& model, const plan::Plan& plan) {
  if (!states_power(machine) || !plan.strategy.empty()) {
    return Energy(0);
  }
  const plan::Plan key = block_key(plan);
  return set_clocks(
      machine, block_work(model, key),
      plan::blocks_of(model, key, {.embedding = true, .head = true, .layers = model.layers}));
}

Energy set_clocks(machine::Machine& machine, const std::vector<BlockWork>& work,
                  const std::vector<plan::BlockKind>& blocks) {
  if (!states_power(machine)) {
    return Energy(0);
  }
  Energy least = Energy::max();
  machine::change_devices(machine, [&](compute::Device& device) {
    const compute::Load load = load_of_blocks(work, blocks, device);
    compute::set_clock(device, load);
    least = std::min(least, compute::energy_above_idle(load, device.full_clock, device));
  });
  return least;
}

}  // namespace orrery::parallel
