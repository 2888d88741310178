// SPDX-License-Identifier: Apache-2.0
/// These checks find what a plan needs of the machine besides devices and memory for it.
#pragma once

#include "base/result.h"
#include "machine/machine.h"
#include "workload/plan/plan.h"

namespace orrery::plan {

/// Mistakes: number formats in which the device does not compute (compute_type, quantization),
/// or whose blocks its units do not scale (mxfp8, nvfp4);
/// memory tiers that it does not have (offload_optimizer, offload_activations); algorithms
/// (tp_algorithm, dp_algorithm) that do not sum over the ranks of their group there.
Result<void> check_machine(const Plan& plan, const machine::Machine& machine);

}  // namespace orrery::plan
