// SPDX-License-Identifier: Apache-2.0
/// PlanDetails are what a search's user asked beside the best plan (planner/advice).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planner/advice/decisions.h"
#include "planner/advice/elastic.h"
#include "planner/advice/launchable.h"
#include "planner/advice/regret.h"
#include "planner/advice/remedies.h"
#include "planner/advice/ties.h"
#include "report/json_writer.h"
#include "study/run_plan.h"

namespace orrery::report {

struct PlanDetails {
  std::vector<advice::Remedy> remedies;  ///< where nothing fits
  std::optional<std::vector<advice::Decision>> decisions;
  std::optional<std::vector<full::Found>> frontier;  ///< time against memory
  std::optional<advice::RegretTable> regret;
  std::optional<advice::Elastic> elastic;
  std::vector<advice::Launchable> frameworks;  ///< that run the best plan or do not
  std::optional<advice::Launch> launch;        ///< where one is asked for
  std::vector<advice::Tie> ties;               ///< of every plan of the answer
  std::optional<study::RunPlan> whole_run;     ///< of so many tokens by the best plan
};

/// Returns one line each: "devices: 2 -> 48 (24.0 times): 12.3 s a step, tp 8 pp 6, ...".
std::vector<std::string> remedy_lines(const std::vector<advice::Remedy>& remedies);

/// Returns the details that there are, as tables behind that of the search.
std::string plan_details_table(const PlanDetails& details, const full::Found& best);

/// Writes keys, each where it was asked for: remedies, frontier, decisions, regret, elastic,
/// whole_run, as docs/schema/plan.json says.
void write_plan_details(JsonWriter& json, const PlanDetails& details, const full::Found* best);

/// Returns a plot of step time over memory of the frontier's plans, as SVG. Mistakes: a frontier of
/// no plan.
Result<std::string> frontier_plot(const std::string& title,
                                  const std::vector<full::Found>& frontier);

}  // namespace orrery::report
