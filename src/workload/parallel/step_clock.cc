// SPDX-License-Identifier: Apache-2.0
#include "workload/parallel/step_clock.h"

#include <algorithm>
#include <vector>

#include "machine/device_groups.h"
#include "workload/parallel/block_workload.h"
#include "workload/plan/model_parts.h"

namespace orrery::parallel {
namespace {

compute::Load load_of_blocks(const std::vector<std::vector<graph::Operator>>& blocks,
                             const std::vector<plan::BlockKind>& kinds,
                             const compute::Device& device) {
  std::vector<compute::Load> by_kind;
  for (const std::vector<graph::Operator>& block : blocks) {
    compute::Load& load = by_kind.emplace_back();
    for (const graph::Operator& kernel : block) {
      load += compute::load_of(kernel, device);
    }
  }
  compute::Load sum;
  for (const plan::BlockKind kind : kinds) {
    sum += by_kind[kind];
  }
  return sum;
}

}  // namespace

Energy set_clocks(machine::Machine& machine, const zoo::Model& model, const plan::Plan& plan) {
  bool known = machine.device.power_model.known();
  for (const machine::DeviceGroup& part : machine.parts) {
    known = known || part.device.power_model.known();
  }
  if (!known || !plan.strategy.empty()) {
    return Energy(0);
  }
  const plan::Plan key = block_key(plan);
  const auto blocks = block_kernels(model, key);
  const auto kinds =
      plan::blocks_of(model, key, {.embedding = true, .head = true, .layers = model.layers});
  Energy least = Energy::max();
  machine::change_devices(machine, [&](compute::Device& device) {
    const compute::Load load = load_of_blocks(blocks, kinds, device);
    compute::set_clock(device, load);
    least = std::min(least, compute::energy_above_idle(load, device.full_clock, device));
  });
  return least;
}

}  // namespace orrery::parallel
