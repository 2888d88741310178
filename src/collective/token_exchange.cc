// SPDX-License-Identifier: Apache-2.0
#include "collective/token_exchange.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace orrery::collective {

namespace {

double places_of_random(double places, double copies) {
  return places * (1 - std::pow(1 - 1 / places, copies));
}

/// P(x): of `drawn` of `all` groups, x are among `marked`.
double hypergeometric(double x, double all, double marked, double drawn) {
  const auto choose = [](double n, double k) {
    return std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1);
  };
  return std::exp(choose(marked, x) + choose(all - marked, drawn - x) - choose(all, drawn));
}

/// A place with `here` groups has none of the token's experts.
double missed_with(double here, const graph::TokenRoute& route) {
  const auto groups = static_cast<double>(route.groups);
  const auto chosen = static_cast<double>(route.chosen);
  const double least = std::max(0.0, chosen - (groups - here));
  const double most = std::min(here, chosen);
  double missed = 0;
  for (int i = 0; least + i <= most; ++i) {
    missed += hypergeometric(least + i, groups, here, chosen) *
              std::pow(1 - (least + i) / chosen, static_cast<double>(route.copies));
  }
  return missed;
}

}  // namespace

double places_reached(double places, const graph::TokenRoute& route) {
  const auto copies = static_cast<double>(route.copies);
  const auto groups = static_cast<double>(route.groups);
  const auto chosen = static_cast<double>(route.chosen);
  if (route.chosen >= route.groups) {
    return places_of_random(places, copies);
  }
  if (places >= groups) {
    return places_of_random(places * chosen / groups, copies);
  }
  const double whole = std::floor(groups / places);
  const double more = groups / places - whole;
  const double missed = (1 - more) * missed_with(whole, route) +
                        (more > 0 ? more * missed_with(whole + 1, route) : 0);
  return places * (1 - missed);
}

std::vector<CollectivePhase> plan_token_exchange(decltype(plan_collective)& plan, Bytes size,
                                                 const graph::TokenRoute& route,
                                                 const std::vector<Extent>& extents,
                                                 CollectiveAlgorithm algorithm,
                                                 const machine::Machine& machine) {
  const std::vector<Extent> inner{extents.front()};
  const std::vector<Extent> outer(extents.begin() + 1, extents.end());
  double nodes = 1;
  for (const Extent& extent : outer) {
    nodes *= static_cast<double>(extent.count);
  }
  const auto share = [&](double places) {
    return places_reached(places, route) / static_cast<double>(route.copies);
  };
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
