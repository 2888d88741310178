// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "machine/machine.h"
#include "workload/plan/plan.h"

namespace orrery::plan {

constexpr bool is_tracked(TensorOverlap how) {
  return how == TensorOverlap::tracked || how == TensorOverlap::tracked_mca;
}

/// Returns the sentence that results with `tracked` and `tracked_mca` carry, as no device that is
/// sold has a tracker: "hypothetical hardware: ..."; "" for others.
std::string hypothetical_hardware(TensorOverlap how, const machine::Machine& machine);

}  // namespace orrery::plan
