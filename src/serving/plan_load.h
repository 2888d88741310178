// SPDX-License-Identifier: Apache-2.0
/// Loads that searches over plans put on an engine. Internal to this folder.
#pragma once

#include <cstdint>
#include <string>

#include "serving/plan_search.h"

namespace orrery::serving {

/// Returns whether requests come whatever is answered: there are objectives, or given requests.
bool is_open(const PlanSearch& search);

struct OpenRun {
  Run run;
  double rate = 0;  ///< per second; 0: none keeps the objectives, the run is of one request alone
};
OpenRun run_open(Server& server, const PlanSearch& search);

/// Returns a run of at least 16 requests, five times as many as are served at once.
Run run_closed(Server& server, const PlanSearch& search, std::int64_t concurrency);

/// Returns which limits a run with these metrics does not keep, and how many requests do.
std::string broken(const Metrics& metrics, const Objectives& limits, double attained,
                   double wanted);

}  // namespace orrery::serving
