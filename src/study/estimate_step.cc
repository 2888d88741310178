// SPDX-License-Identifier: Apache-2.0
#include "study/estimate_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/beyond_time.h"
#include "study/run.h"
#include "workload/memory/footprint.h"

namespace orrery::study {

Result<StepEstimate> estimate_step(const zoo::Model& model, const machine::Machine& machine,
                                   const plan::Plan& plan, std::int64_t devices) {
  if (Error mistakes = plan_mistakes(model, machine, plan, devices); !mistakes.empty()) {
    return fail(std::move(mistakes));
  }
  const auto memory = footprint::memory_footprint(model, plan, &machine);
  if (!memory) {
    return fail(memory.error());
  }
  estimate::Estimator estimator(model, machine);
  const auto time = estimator.estimate(plan);
  const auto bound = estimator.lower_bound(plan);
  if (!time || !bound) {
    return fail(time ? bound.error() : time.error());
  }
  for (const Time part :
       {*bound, time->step_time, time->compute, time->exposed, time->bubble, time->tail}) {
    if (part.is_overflow()) {
      return fail(fmt::format("the step {}", kBeyondTime));
    }
  }
  StepEstimate result{.devices = plan.devices(), .time = *time, .lower_bound = *bound};
  for (const footprint::StageMemory& stage : *memory) {
    result.memory = std::max(result.memory, stage.total());
  }
  if (!machine.device.memory.empty()) {
    result.capacity = machine.device.memory.front().capacity;
  }
  result.fits = footprint::check_fits(*memory, machine).has_value();
  return result;
}

}  // namespace orrery::study
