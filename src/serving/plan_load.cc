// SPDX-License-Identifier: Apache-2.0
#include "serving/plan_load.h"

#include <fmt/format.h>

#include <algorithm>

#include "serving/search.h"

namespace orrery::serving {

bool is_open(const PlanSearch& search) {
  const Objectives& limits = search.objectives;
  return !search.requests.empty() || !limits.ttft.is_overflow() || !limits.tpot.is_overflow() ||
         !limits.e2e.is_overflow();
}

OpenRun run_open(Server& server, const PlanSearch& search) {
  const ServeOptions options{.go_on = search.go_on};
  if (!search.requests.empty()) {
    return {.run = server.run(search.requests, options), .rate = search.rate};
  }
  requests::Generator alone = search.load;
  alone.count = 1;
  Run one = server.run(requests::generate(alone));
  if (attainment(one, search.objectives) < search.attainment) {
    return {.run = std::move(one), .rate = 0};
  }
  RateFound found =
      search_rate(server, search.load,
                  {.objectives = search.objectives, .attainment = search.attainment}, options);
  return found.rate > 0 ? OpenRun{.run = std::move(found.run), .rate = found.rate}
                        : OpenRun{.run = std::move(one), .rate = 0};
}

Run run_closed(Server& server, const PlanSearch& search, std::int64_t concurrency) {
  constexpr std::int64_t kRounds = 5;  // requests of a simulation over those at once
  constexpr std::int64_t kFewestRequests = 16;
  requests::Generator load = search.load;
  load.arrival = requests::Arrival::infinite;
  load.count = std::max(kFewestRequests, kRounds * concurrency);
  return server.run(requests::generate(load),
                    {.max_concurrency = concurrency, .go_on = search.go_on});
}

std::string broken(const Metrics& m, const Objectives& limits, double attained, double wanted) {
  const auto over = [&](const char* name, const Statistics& found, Time limit) {
    return found.p99 > limit ? fmt::format("P99 {} {:.4g} ms instead of {:.4g}, ", name,
                                           1e3 * to_seconds(found.p99), 1e3 * to_seconds(limit))
                             : std::string();
  };
  return over("TTFT", m.ttft, limits.ttft) + over("TPOT", m.tpot, limits.tpot) +
         over("E2E", m.e2e, limits.e2e) +
         fmt::format("limits kept by {:.1f} % of requests instead of {:.1f}", 100 * attained,
                     100 * wanted);
}

}  // namespace orrery::serving
