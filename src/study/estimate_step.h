// SPDX-License-Identifier: Apache-2.0
/// One training step as an interval, from descriptions to figures: what `orrery estimate` prints.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "base/units.h"
#include "estimate/estimate.h"
#include "machine/machine.h"
#include "study/trust.h"
#include "workload/plan/plan.h"
#include "workload/zoo/model.h"

namespace orrery::study {

struct StepEstimate {
  std::int64_t devices = 0;
  estimate::Interval time;
  Bytes memory{0};  ///< of the fullest stage, as run_step() has it
  Bytes capacity{0};
  bool fits = true;
  std::string hypothetical{};  ///< plan::hypothetical_hardware
  machine::Machine machine{};
  Causes causes{};  ///< of the error of `time`
};

/// `devices` 0 means plan.devices(). Mistakes: those of plan_mistakes(). A plan that does not fit
/// is estimated too.
Result<StepEstimate> estimate_step(const zoo::Model& model, const machine::Machine& machine,
                                   const plan::Plan& plan, std::int64_t devices);

}  // namespace orrery::study
