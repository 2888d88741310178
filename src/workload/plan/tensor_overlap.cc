// SPDX-License-Identifier: Apache-2.0
#include "workload/plan/tensor_overlap.h"

#include <fmt/format.h>

namespace orrery::plan {

std::string hypothetical_hardware(TensorOverlap how, const machine::Machine& machine) {
  if (!is_tracked(how)) {
    return "";
  }
  const compute::Device& device = machine.device;
  const std::string contention =
      how == TensorOverlap::tracked
          ? fmt::format(" with contention {}",
                        device.tracker.value_or(compute::Tracker()).contention)
          : "";
  return fmt::format(
      "hypothetical hardware: overlap_tensor {} wants a tracker and sums near the "
      "memory{}; {}",
      name_of(how), contention,
      device.tracker ? device.name + " is stated to have them"
                     : device.name + " states none (device.tracker)");
}

}  // namespace orrery::plan
