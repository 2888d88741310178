// SPDX-License-Identifier: Apache-2.0
#include "estimate/answers.h"

#include <algorithm>

#include "estimate/pass_map.h"

namespace orrery::estimate {

Estimate parts_of(const ReplayResult& run) {
  const auto busiest =
      std::max_element(run.stages.begin(), run.stages.end(),
                       [](const StageTime& a, const StageTime& b) { return a.busy < b.busy; });
  return {.step_time = run.step_time,
          .compute = busiest->kernels,
          .exposed = busiest->busy - busiest->kernels,
          .bubble = busiest->end - busiest->busy,
          .tail = run.step_time - busiest->end};
}

Result<Estimate> within_range(const Estimate& estimate) {
  if (estimate.step_time >= kMostTime) {
    return fail("the step takes longer than 53 days, beyond the range of estimated time");
  }
  return estimate;
}

}  // namespace orrery::estimate
