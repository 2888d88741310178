// SPDX-License-Identifier: Apache-2.0
#include "collective/token_exchange.h"

#include <cmath>
#include <utility>

namespace orrery::collective {

double places_reached(double places, double copies) {
  return places * (1 - std::pow(1 - 1 / places, copies));
}

std::vector<CollectivePhase> plan_token_exchange(decltype(plan_collective)& plan, Bytes size,
                                                 std::int64_t copies,
                                                 const std::vector<Extent>& extents,
                                                 CollectiveAlgorithm algorithm,
                                                 const machine::Machine& machine) {
  const std::vector<Extent> inner{extents.front()};
  const std::vector<Extent> outer(extents.begin() + 1, extents.end());
  double nodes = 1;
  for (const Extent& extent : outer) {
    nodes *= static_cast<double>(extent.count);
  }
  const auto wanted = static_cast<double>(copies);
  const auto share = [&](double places) { return places_reached(places, wanted) / wanted; };
  std::vector<CollectivePhase> phases;
  if (nodes > 1) {
    phases =
        plan(graph::CollectiveKind::all_to_all, size * share(nodes), outer, algorithm, machine);
  }
  const double ranks = nodes * static_cast<double>(extents.front().count);
  for (CollectivePhase& phase :
       plan(graph::CollectiveKind::all_to_all, size * share(ranks), inner, algorithm, machine)) {
    phases.push_back(std::move(phase));
  }
  return phases;
}

}  // namespace orrery::collective
