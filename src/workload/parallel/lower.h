// SPDX-License-Identifier: Apache-2.0
/// Model + plan -> Workload, by named passes (passes.h).
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "graph/workload.h"
#include "machine/machine.h"
#include "workload/plan/plan.h"
#include "workload/zoo/model.h"

namespace orrery::parallel {

/// A PassSetting is what a pass over a workload may know besides it; null: of a workload that comes
/// from no plan, or for no machine.
struct PassSetting {
  const machine::Machine* machine = nullptr;
  const plan::Plan* plan = nullptr;
  bool fuse_communication = false;  ///< the pass "communication" does something
};

struct LowerOptions {
  std::set<std::string> skip{};  ///< names of passes to leave out
  /// Called after each pass with its name and the workload it made.
  std::function<void(const std::string& pass, const graph::Workload&)> observe{};
  const machine::Machine* machine = nullptr;  ///< that it is lowered for, if any
  bool fuse_communication = false;            ///< PassSetting's
  std::int64_t steps = 1;                     ///< of the run, one after the other
};

/// Lowers a checked plan; requires options.steps >= 1. Runs every pass of kPasses in order and
/// verify() after the last and, with observe set, after each. Unknown names in `skip` are mistakes
/// with "did you mean".
Result<graph::Workload> lower(const zoo::Model& model, const plan::Plan& plan,
                              const LowerOptions& options = {});

/// The passes over workloads, on one from anywhere (a trace). What they make is as sound as what
/// they are given.
graph::Workload transform(graph::Workload workload, const PassSetting& setting);

struct PassName {
  std::string name;
  std::string meaning;
};
std::vector<PassName> lowering_passes();

}  // namespace orrery::parallel
