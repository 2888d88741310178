// SPDX-License-Identifier: Apache-2.0
/// A plan that is completed with what is wrong in it: one look for who asks of very many plans.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "machine/machine.h"
#include "workload/plan/plan.h"
#include "workload/zoo/model.h"

namespace orrery::plan {

struct Completed {
  Plan plan;
  Error mistakes;  ///< of check(), where it finds none those of check_machine()
};

/// Returns what complete() (defaults.h) makes of a plan whose framework has filled what it fills.
Completed completed(const PlacedPlan& filled, const zoo::Model* model,
                    const machine::Machine* machine, std::int64_t devices);

}  // namespace orrery::plan
