// SPDX-License-Identifier: Apache-2.0
#include "planner/full/fits.h"

#include "workload/memory/footprint.h"

namespace orrery::full {

std::pair<bool, Bytes> memory_of(const Task& task, const plan::Plan& plan) {
  if (!plan::check(plan, task.model)) {
    return {false, Bytes::max()};
  }
  const footprint::Fullest fullest = footprint::fullest(task.model, plan, task.machine);
  return {fullest.fits, fullest.total};
}

}  // namespace orrery::full
