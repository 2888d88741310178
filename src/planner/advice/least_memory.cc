// SPDX-License-Identifier: Apache-2.0
#include "planner/advice/least_memory.h"

#include <algorithm>

namespace orrery::advice {

std::optional<full::Found> least_memory(const full::Task& task, const full::Options& options,
                                        Bytes too_little, Bytes enough, double near) {
  const auto with = [&](Bytes memory) {
    full::Task other = task;
    full::Options limits = options;
    use_memory(other, limits, memory);
    return any_plan(other, limits);
  };
  const Bytes most = enough * 4;
  std::optional<full::Found> least = with(enough);
  while (!least && enough < most && (!options.go_on || options.go_on())) {
    too_little = enough;
    enough = std::min(most, enough * 1.25);
    least = with(enough);
  }
  while (least && least->memory > too_little * near && (!options.go_on || options.go_on())) {
    const Bytes middle = too_little + (least->memory - too_little) / 2;
    auto found = with(middle);
    if (found) {
      least = std::move(found);
    } else {
      too_little = middle;
    }
  }
  return least;
}

}  // namespace orrery::advice
