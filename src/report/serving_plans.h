// SPDX-License-Identifier: Apache-2.0
/// A search over serving plans in the forms in which people and programs read it.
#pragma once

#include <string>

#include "serving/plan_search.h"

namespace orrery::report {

/// Returns the front as a table, and what the other layouts lose.
std::string serving_plans_text(const serving::PlansFound& found, const std::string& model);

/// Returns one JSON object: search ("plan"), model, front and beaten (objects of machine, format,
/// tp, pp, dp, ep, replicas, prefill, prefill_tp, devices, concurrency, requests_per_s, rate (that
/// keeps the objectives; 0: not looked for), output_tokens_per_s_per_device,
/// output_tokens_per_s_per_user, ttft_p99_s, tpot_p99_s, cost_per_million_tokens where known,
/// share, breaks), losers (the layout's fields, share, reason), layouts, screened, screen_error,
/// timing {wall_s}.
std::string serving_plans_json(const serving::PlansFound& found, const std::string& model);
/// Returns the points of the front, one per line under the names of JSON.
std::string serving_plans_csv(const serving::PlansFound& found);

/// Returns a plot of tokens/s of a device over tokens/s of a user: a series for each layout, the
/// front named.
std::string serving_plans_svg(const serving::PlansFound& found, const std::string& model);

}  // namespace orrery::report
