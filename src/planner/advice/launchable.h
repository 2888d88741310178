// SPDX-License-Identifier: Apache-2.0
/// Says which frameworks can run a plan (workload/interop/capabilities.h), and its launch there.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "machine/machine.h"
#include "planner/full/space.h"
#include "workload/interop/interop.h"

namespace orrery::advice {

struct Launchable {
  std::string framework;
  std::vector<interop::Remark> lacks;  ///< fields that it cannot run as the plan has them
};

/// Returns all frameworks that plans can be exported to; those that run the plan first.
std::vector<Launchable> launchable(const plan::Plan& plan, const zoo::Model& model);

/// A Launch is a plan as a framework starts it.
struct Launch {
  std::string file;  ///< where it is written, "" = nowhere yet
  std::string text;
  std::string command;  ///< reads the plan back: "orrery import megatron launch.sh ..."
};

/// Returns the launch of the plan by the task's launcher; `model_name` is how the user named the
/// model, `path` a file, or a folder that exists or ends in a slash, in which the launcher's own
/// name of it is written. Mistakes: fields that the launch does not state and that no flag of the
/// import can.
Result<Launch> launch(const full::Task& task, const plan::Plan& plan, const std::string& model_name,
                      const std::string& path);

}  // namespace orrery::advice
