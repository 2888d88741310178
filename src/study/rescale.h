// SPDX-License-Identifier: Apache-2.0
/// The step of another plan from what devices did in a step of one plan.
#pragma once

#include "base/result.h"
#include "study/run.h"
#include "study/step_times.h"

namespace orrery::study {

/// Returns the step of `other`, a run of another plan of the model on the machine, if its kernels
/// are as much longer than the machine says as those of the measured plan were:
///
///   time of a kernel = its time alone on the machine * measured / simulated
///
/// of the kernels with its name, where both steps have that name (Chakra traces of a plan), else of
/// its class. Beside communication a kernel is slowed down by as much as on the machine.
///
/// Ignores: how exchanges, copies and the host differed from the simulated ones: these are the
/// machine's; that kernels of other shapes may be off by another factor.
/// Mistakes: a machine of several parts, whose kernels have several times; those of simulating.
Result<Rescaled> rescale(const StepTimes& measured, const StepTimes& simulated, const Run& other);

}  // namespace orrery::study
