// SPDX-License-Identifier: Apache-2.0
/// The nearest routes to a vertex, and a flow over all of them (routing.h).
#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include "machine/topology/routing.h"

namespace orrery::topology {

/// Returns the width of a route that begins with the link and goes on as wide as it can.
float Router::width_over(std::int32_t link, const Nearest& to_goal) const {
  return std::min(static_cast<float>(at(link).bandwidth.value()),
                  to_goal.width[static_cast<std::size_t>(at(link).target)]);
}

/// Goes from a vertex whose nearest routes are known back over the links that lead to it.
void Router::reach_before(std::int32_t vertex, std::int32_t target, Nearest& found,
                          Rings& rings) const {
  if (vertex != target && vertex < graph_.hosts && !graph_.hosts_forward) {
    return;
  }
  for (const std::int32_t link : into_[static_cast<std::size_t>(vertex)]) {
    const auto before = static_cast<std::size_t>(at(link).source);
    const int far = found.distance[static_cast<std::size_t>(vertex)] + at(link).length;
    std::int16_t& known = found.distance[before];
    if ((known < 0 || far < known) && far <= std::numeric_limits<std::int16_t>::max()) {
      known = static_cast<std::int16_t>(far);
      rings[far].push_back(at(link).source);
      if (unlike_) {
        found.width[before] = 0;
      }
    }
    if (unlike_ && far == known) {
      found.width[before] = std::max(found.width[before], width_over(link, found));
    }
  }
}

const Router::Nearest& Router::nearest(std::int32_t target) {
  auto& known = nearest_[static_cast<std::size_t>(target)];
  if (known) {
    return *known;
  }
  // Against the direction of links: cables go both ways, single links are looked up from behind.
  known = std::make_unique<Nearest>();
  known->distance.assign(graph_.vertices.size(), -1);
  if (unlike_) {
    known->width.assign(graph_.vertices.size(), 0);
    known->width[static_cast<std::size_t>(target)] = std::numeric_limits<float>::infinity();
  }
  if (into_.empty()) {
    into_.resize(graph_.vertices.size());
    for (std::int32_t from = 0; from < std::ssize(graph_.vertices); ++from) {
      for (const std::int32_t link : adjacency_.out(from)) {
        into_[static_cast<std::size_t>(at(link).target)].push_back(link);
      }
    }
  }
  known->distance[static_cast<std::size_t>(target)] = 0;
  Rings rings{{0, {target}}};
  while (!rings.empty()) {
    const auto [distance, ring] = *rings.begin();
    rings.erase(rings.begin());
    for (const std::int32_t vertex : ring) {
      if (known->distance[static_cast<std::size_t>(vertex)] == distance) {  // else found nearer
        reach_before(vertex, target, *known, rings);
      }
    }
  }
  return *known;
}

const std::vector<std::int16_t>& Router::distances(std::int32_t target) {
  return nearest(target).distance;
}

std::vector<std::int32_t> Router::nearer(std::int32_t here, std::int32_t goal) {
  const Nearest& to_goal = nearest(goal);
  const std::vector<std::int16_t>& far = to_goal.distance;
  std::vector<std::int32_t> routes;
  for (const std::int32_t link : adjacency_.out(here)) {
    const std::int32_t to = at(link).target;
    const bool passes = to == goal || to >= graph_.hosts || graph_.hosts_forward;
    if (passes && far[static_cast<std::size_t>(to)] >= 0 &&
        far[static_cast<std::size_t>(to)] + at(link).length ==
            far[static_cast<std::size_t>(here)] &&
        (!unlike_ ||
         2 * width_over(link, to_goal) >= to_goal.width[static_cast<std::size_t>(here)])) {
      routes.push_back(link);
    }
  }
  return routes;
}

/// The part of a sprayed flow that is here, over links that come nearer. The first of them.
std::int32_t Router::spray_on(std::int32_t here, std::int32_t goal, Rings& rings,
                              std::vector<Hop>& hops) {
  const Nearest& to_goal = nearest(goal);
  const std::vector<std::int32_t> routes = nearer(here, goal);
  const double share = std::exchange(share_[static_cast<std::size_t>(here)], 0);
  const auto width = [&](std::int32_t link) {
    return unlike_ ? double{width_over(link, to_goal)} : 1.0;
  };
  double all = 0;
  for (const std::int32_t link : routes) {
    all += width(link);
  }
  for (const std::int32_t link : routes) {
    const std::int32_t to = at(link).target;
    double& there = share_[static_cast<std::size_t>(to)];
    if (there == 0) {
      rings[to_goal.distance[static_cast<std::size_t>(to)]].push_back(to);
    }
    const double part = share / (all / width(link));
    there += part;
    hops.push_back({link_id(link), Bandwidth(at(link).bandwidth.value() / part), Time(0)});
  }
  return routes.front();
}

/// Vertices from the farthest on: all that comes to one has come when it is passed on.
bool Router::spray(std::int32_t source, std::int32_t target, std::vector<Hop>& hops) {
  const std::size_t first = hops.size();
  const std::int32_t goal = gates_[static_cast<std::size_t>(target)];
  const std::int16_t far = nearest(goal).distance[static_cast<std::size_t>(source)];
  if (far < 0) {
    return false;
  }
  Time latency{0};
  std::int32_t front = source;  // of the first of the routes
  Rings rings{{far, {source}}};
  share_[static_cast<std::size_t>(source)] = 1;
  while (rings.rbegin()->first > 0) {
    const std::vector<std::int32_t> ring = std::move(rings.rbegin()->second);
    rings.erase(std::prev(rings.end()));
    for (const std::int32_t here : ring) {
      const GraphLink& route = at(spray_on(here, goal, rings, hops));
      latency += here == front ? route.latency : Time(0);
      front = here == front ? route.target : front;
    }
  }
  share_[static_cast<std::size_t>(goal)] = 0;
  const bool found = goal == target || pass(goal, target, 0, hops);
  hops[first].latency += latency;
  return found;
}

}  // namespace orrery::topology
