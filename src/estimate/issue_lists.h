// SPDX-License-Identifier: Apache-2.0
/// The issue lists of a workload's source, written out, and where all of them repeat.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/workload.h"

namespace orrery::estimation {

/// Between `from` and `until` a stage's list repeats every `length` instances. In a round every
/// stage issues that many.
struct Repetition {
  std::int64_t length = 0;  ///< 0: the lists do not repeat, or not all alike
  std::vector<std::int64_t> from;
  std::vector<std::int64_t> until;
};

struct IssueLists {
  std::vector<std::vector<int>> templates;  ///< [stage][instance] -> template of the program
  Repetition repetition;
};

/// Finds the repetition around the middle of the lists. Schedules whose stages do all of one thing
/// before the next (gpipe) repeat nowhere in this sense.
IssueLists issue_lists(const Workload& workload);

}  // namespace orrery::estimation
