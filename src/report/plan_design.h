// SPDX-License-Identifier: Apache-2.0
/// Machines of a design question, each with its best plan (study/sweep/design.h).
#pragma once

#include <string>

#include "base/result.h"
#include "study/sweep/design.h"

namespace orrery::report {

/// Returns a line for each point, * before the best of each model.
std::string design_table(const sweep::Design& design);

/// Returns JSON with the keys varied (names), points [{varied: [values], model, devices,
/// price_per_hour, affordable, best (of its model), cost_per_million_tokens, error, and
/// kPlanFigures}], null what a point has not.
std::string design_json(const sweep::Design& design);

/// Tokens per second over the first varied name that has numbers (of one unit, or none), a line for
/// each combination of the others; points without a plan are not drawn. Mistakes: no such name.
Result<std::string> design_plot(const std::string& title, const sweep::Design& design);

}  // namespace orrery::report
