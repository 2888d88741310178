// SPDX-License-Identifier: Apache-2.0
/// A plan's templates as lists of steps, without nodes: for who times very many plans and runs none
/// of them. The steps of a block stand once for all layers of its kind, and stages between the ends
/// that do the same are drafted once.
#pragma once

#include <memory>

#include "base/result.h"
#include "workload/parallel/draft.h"
#include "workload/parallel/step_list.h"

namespace orrery::parallel {

struct Outline {
  std::unique_ptr<Draft> draft = std::make_unique<Draft>();  ///< without memory
  StepLists lists;  ///< of what lower() makes before its passes over the workload
  int numbers = 0;  ///< above every Step::number; in one program a number is one step
};

/// Requires a checked plan.
Result<Outline> outline(const zoo::Model& model, const plan::Plan& plan);

}  // namespace orrery::parallel
