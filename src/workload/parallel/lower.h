// SPDX-License-Identifier: Apache-2.0
/// Model + plan -> Workload, by named passes (passes.h).
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "graph/workload.h"
#include "workload/plan/plan.h"
#include "workload/zoo/model.h"

namespace orrery {

struct LowerOptions {
  std::set<std::string> skip{};  ///< names of passes to leave out
  /// Called after each pass with its name and the workload it made.
  std::function<void(const std::string& pass, const Workload&)> observe{};
};

/// Lowers a checked plan. Runs every pass of kPasses in order and verify() after the last and, with
/// observe set, after each. Unknown names in `skip` are mistakes with "did you mean".
Result<Workload> lower(const Model& model, const Plan& plan, const LowerOptions& options = {});

struct PassName {
  std::string name;
  std::string meaning;
};
std::vector<PassName> lowering_passes();

}  // namespace orrery
