// SPDX-License-Identifier: Apache-2.0
#include "study/estimate_step.h"

#include <algorithm>
#include <utility>

#include "machine/device_groups.h"
#include "study/run.h"
#include "workload/memory/footprint.h"
#include "workload/parallel/proportion.h"
#include "workload/plan/tensor_overlap.h"

namespace orrery::study {

Result<StepEstimate> estimate_step(const zoo::Model& model, const machine::Machine& machine,
                                   const plan::Plan& plan, std::int64_t devices) {
  if (Error mistakes = plan_mistakes(model, machine, plan, devices); !mistakes.empty()) {
    return fail(std::move(mistakes));
  }
  const machine::Machine own = *machine::arranged(machine, plan.parts);
  const plan::Plan resolved = parallel::in_proportion(plan, model, own);
  const auto memory = footprint::memory_footprint(model, resolved, &own);
  if (!memory) {
    return fail(memory.error());
  }
  estimate::Estimator estimator(model, own);
  const auto time = estimator.interval(resolved);
  if (!time) {
    return fail(time.error());
  }
  StepEstimate result{.devices = plan.devices(), .time = *time};
  const auto fullest = std::ranges::min_element(
      *memory, {},
      [](const footprint::StageMemory& stage) { return stage.capacity - stage.total(); });
  result.memory = fullest->total();
  result.capacity = fullest->capacity;
  result.fits = footprint::check_fits(*memory, own).has_value();
  result.hypothetical = plan::hypothetical_hardware(plan.overlap_tensor, own);
  result.causes = causes_of(model, resolved, own);
  result.machine = own;
  return result;
}

}  // namespace orrery::study
