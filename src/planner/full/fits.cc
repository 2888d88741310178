// SPDX-License-Identifier: Apache-2.0
#include "planner/full/fits.h"

#include <algorithm>

#include "workload/memory/footprint.h"

namespace orrery::full {

std::pair<bool, Bytes> memory_of(const Task& task, const plan::Plan& plan) {
  const auto stages = footprint::memory_footprint(task.model, plan, &task.machine);
  if (!stages) {
    return {false, Bytes::max()};
  }
  Bytes most{0};
  for (const footprint::StageMemory& stage : *stages) {
    most = std::max(most, stage.total());
  }
  return {footprint::check_fits(*stages, task.machine).has_value(), most};
}

}  // namespace orrery::full
