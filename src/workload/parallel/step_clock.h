// SPDX-License-Identifier: Apache-2.0
/// The clock of a training step: that at which the power of its kernels meets the device's cap.
#pragma once

#include <vector>

#include "machine/compute/clock.h"
#include "machine/machine.h"
#include "workload/parallel/block_workload.h"
#include "workload/plan/model_parts.h"
#include "workload/plan/plan.h"
#include "workload/zoo/model.h"

namespace orrery::parallel {

/// Sets Device::clock of every device of the machine to that of the plan's step
/// (compute::set_clock), and returns what the kernels of one microbatch on all stages draw above
/// idle power at that clock, of device groups the least.
///
/// The load is that of the forward and backward kernels of every block, one after the other.
///
/// Ignores:  recomputed kernels, which are the forward's again; the optimizer, bubbles and what
///           waits for a network: the regulator holds the power of what runs, within 10 to 100 ms,
///           so that idle time of a longer step lends no watts to its kernels. A plan with a
///           strategy keeps the clock of the usual mix.
/// Requires: a checked plan.
Energy set_clocks(machine::Machine& machine, const zoo::Model& model, const plan::Plan& plan);

/// The same of a model's blocks, by kind the work of each.
Energy set_clocks(machine::Machine& machine, const std::vector<BlockWork>& work,
                  const std::vector<plan::BlockKind>& blocks);

}  // namespace orrery::parallel
