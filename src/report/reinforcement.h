// SPDX-License-Identifier: Apache-2.0
/// Arrangements of a step of reinforcement learning (planner/reinforcement/sizing.h).
#pragma once

#include <string>

#include "planner/reinforcement/sizing.h"
#include "report/fields.h"

namespace orrery::report {

struct ReinforcementReport {
  std::string model{};
  std::string machine{};
  std::int64_t devices = 1;
  reinforcement::Sizing sizing{};
};

/// Returns a row for each arrangement, the fastest first.
std::string reinforcement_table(const ReinforcementReport& report);

/// Declares docs/schema/reinforce.json.
void declare(const ReinforcementReport& report, Fields& fields);

}  // namespace orrery::report
