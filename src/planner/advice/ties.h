// SPDX-License-Identifier: Apache-2.0
/// Says which of a search's plans cannot be told apart by their simulated times (study/trust.h).
#pragma once

#include <vector>

#include "base/result.h"
#include "planner/full/search.h"
#include "study/trust.h"

namespace orrery::advice {

/// Says how sure it is that a plan is slower than the first.
struct Tie {
  study::Range interval80;  ///< of the ratio of their times; what they have in common cancels
  bool open = false;        ///< it holds 1: either may be faster
};

/// Returns one for each plan of the answer. Mistakes: as study::ErrorModel::load().
Result<std::vector<Tie>> ties(const full::Task& task, const full::Answer& answer);

}  // namespace orrery::advice
