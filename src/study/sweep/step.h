// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/reader.h"
#include "machine/machine.h"
#include "study/run.h"
#include "workload/plan/plan.h"
#include "workload/zoo/model.h"

namespace orrery::sweep {

/// A Step is what of a point decides a training step: model, machine, plan, devices.
struct Step {
  zoo::Model model;
  machine::Machine machine;
  plan::PlacedPlan plan;
  std::int64_t devices = 0;  ///< 0: the plan's own
  study::RunOptions options;
};

/// Reads the model of a study, where the model's name is a field of its node.
Result<zoo::Model> read_model(const ConfigNode& node);

/// Reads model, machine, plan and devices; the rest is the caller's.
Step read_step(Reader& description);

/// Returns how many devices all parts of a machine have; 0 without parts.
std::int64_t devices_in_parts(const machine::Machine& machine);

}  // namespace orrery::sweep
