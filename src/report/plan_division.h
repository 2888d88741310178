// SPDX-License-Identifier: Apache-2.0
/// Devices divided between models (planner/advice/division.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "planner/advice/division.h"
#include "report/fields.h"

namespace orrery::report {

struct DivisionReport {
  std::string machine{};
  std::int64_t devices = 1;
  full::Objective objective = full::Objective::time;
  std::vector<advice::Work> works{};
  advice::Division division{};
  bool ended_early = false;  ///< by a signal: what is missing was not searched
};

/// Returns both arrangements, the better first, a line for each model.
std::string division_table(const DivisionReport& report);

/// Declares docs/schema/plan-division.json.
void declare(const DivisionReport& report, Fields& fields);

}  // namespace orrery::report
