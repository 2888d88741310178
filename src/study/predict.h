// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"
#include "machine/machine.h"
#include "study/profile.h"
#include "study/settings.h"
#include "study/trust.h"

namespace orrery::study {

struct Prediction {
  double value = 0;  ///< in the unit of the measure
  bool oom = false;  ///< a stage needs more memory than the device has
  Causes causes{};   ///< what its error may come from
};

/// Returns the plan with the least recompute that fits: as it is; then, unless it states some,
/// modules (layernorm; also moe_act of experts; also mla_up_proj of latent attention; the attention
/// core); then the fewest layers per chunk in full; at last all in full, whether that fits or not.
plan::Plan least_recompute(const zoo::Model& model, const machine::Machine& machine,
                           const plan::Plan& plan);

/// Returns what `run` would measure on `machine`, simulated although it may not fit. Mistakes: the
/// plan's, as check() and run_step() give them.
Result<Prediction> predict(const TableCase& run, Measure measure, const machine::Machine& machine);

}  // namespace orrery::study
