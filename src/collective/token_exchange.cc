// SPDX-License-Identifier: Apache-2.0
#include "collective/token_exchange.h"

#include <cmath>
#include <utility>

namespace orrery::collective {

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
  const double reached = nodes * (1 - std::pow(1 - 1 / nodes, wanted));
  std::vector<CollectivePhase> phases =
      plan(graph::CollectiveKind::all_to_all, size * (reached / wanted), outer, algorithm, machine);
  for (CollectivePhase& phase :
       plan(graph::CollectiveKind::all_to_all, size, inner, algorithm, machine)) {
    phases.push_back(std::move(phase));
  }
  return phases;
}

}  // namespace orrery::collective
