// SPDX-License-Identifier: Apache-2.0
#include "planner/advice/ties.h"

#include <cmath>

namespace orrery::advice {

Result<std::vector<Tie>> ties(const full::Task& task, const full::Answer& answer) {
  const auto errors = study::ErrorModel::load();
  if (!errors) {
    return fail(errors.error());
  }
  const auto trust_of = [&](const full::Found& found) {
    return errors->trust(study::causes_of(task.model, found.plan, task.machine));
  };
  std::vector<Tie> ties;
  const full::Found& first = answer.top.front();
  const study::Trust of_first = trust_of(first);
  for (const full::Found& found : answer.top) {
    const study::Trust trust = trust_of(found);
    const double half = study::kEightyPercent * study::joint_sigma(of_first.causes, of_first.sigma,
                                                                   trust.causes, trust.sigma);
    const double ratio = found.step_time / first.step_time;
    const study::Range range{ratio * std::exp(-half), ratio * std::exp(half)};
    ties.push_back({range, range.least <= 1 && 1 <= range.most});
  }
  return ties;
}

}  // namespace orrery::advice
