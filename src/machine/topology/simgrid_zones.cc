// SPDX-License-Identifier: Apache-2.0
#include "machine/topology/simgrid_zones.h"

#include <algorithm>
#include <set>

namespace orrery::topology {

std::size_t SimgridZones::open(std::int32_t parent_zone, ZoneRouting routing) {
  zones_.emplace_back().routing = routing;
  parents_.push_back(parent_zone);
  point_of_zone_.push_back(parent_zone < 0 ? -1 : add_point(static_cast<std::size_t>(parent_zone)));
  return zones_.size() - 1;
}

std::int32_t SimgridZones::add_point(std::size_t zone) {
  zone_of_point_.push_back(zone);
  return static_cast<std::int32_t>(zone_of_point_.size()) - 1;
}

/// Returns the zones around a point, from the outermost to the one that it is in.
std::vector<std::size_t> SimgridZones::zones_around(std::int32_t point) const {
  std::vector<std::size_t> around{zone_of_point_[static_cast<std::size_t>(point)]};
  while (parents_[around.back()] >= 0) {
    around.push_back(static_cast<std::size_t>(parents_[around.back()]));
  }
  std::ranges::reverse(around);
  return around;
}

/// Routes as SimGrid does: in the innermost zone around both points it goes from the source to its
/// gateway there, over the route, and from the other gateway on.
bool SimgridZones::route(std::int32_t source, std::int32_t target,
                         std::vector<std::int32_t>& links) {
  if (source == target) {
    return true;
  }
  const std::vector<std::size_t> of_source = zones_around(source);
  const std::vector<std::size_t> of_target = zones_around(target);
  std::size_t depth = 0;
  while (depth + 1 < std::min(of_source.size(), of_target.size()) &&
         of_source[depth + 1] == of_target[depth + 1]) {
    ++depth;
  }
  const auto at = [&](const std::vector<std::size_t>& around, std::int32_t point) {
    return depth + 1 < around.size() ? point_of_zone_[around[depth + 1]] : point;
  };
  Route joined;
  if (!local(of_source[depth], at(of_source, source), at(of_target, target), joined)) {
    return false;
  }
  const std::int32_t leaves = joined.source_gateway < 0 ? source : joined.source_gateway;
  const std::int32_t enters = joined.target_gateway < 0 ? target : joined.target_gateway;
  if (!route(source, leaves, links)) {
    return false;
  }
  links.insert(links.end(), joined.links.begin(), joined.links.end());
  return route(enters, target, links);
}

bool SimgridZones::local(std::size_t zone, std::int32_t source, std::int32_t target, Route& found) {
  const Zone& of = zones_[zone];
  if (of.routing == ZoneRouting::cluster) {
    return over_cluster(of, source, target, found);
  }
  if (of.routing == ZoneRouting::shortest) {
    return over_fewest(zone, source, target, found);
  }
  const auto stated = of.routes.find({source, target});
  if (stated != of.routes.end()) {
    found = stated->second;
  }
  return stated != of.routes.end();
}

bool SimgridZones::over_cluster(const Zone& zone, std::int32_t source, std::int32_t target,
                                Route& found) const {
  const auto append = [&](const auto& links, std::int32_t point) {
    if (const auto own = links.find(point); own != links.end()) {  // its router has none
      found.links.insert(found.links.end(), own->second.begin(), own->second.end());
    }
  };
  append(zone.up, source);
  if (zone.backbone >= 0) {
    found.links.push_back(zone.backbone);
  }
  append(zone.down, target);
  return true;
}

const std::map<std::int32_t, std::int32_t>& SimgridZones::before(std::size_t zone,
                                                                 std::int32_t source) {
  const auto [known, is_new] = before_.try_emplace({zone, source});
  if (!is_new) {
    return known->second;
  }
  std::map<std::int32_t, std::size_t> far{{source, 0}};
  std::set<std::pair<std::size_t, std::int32_t>> open{{0, source}};
  while (!open.empty()) {
    const auto [distance, here] = *open.begin();
    open.erase(open.begin());
    const auto& routes = zones_[zone].routes;
    for (auto route = routes.lower_bound({here, -1});
         route != routes.end() && route->first.first == here; ++route) {
      const std::int32_t to = route->first.second;
      const std::size_t next = distance + route->second.links.size();
      const auto [old, first] = far.try_emplace(to, next);
      if (first || next < old->second) {
        open.erase({old->second, to});
        old->second = next;
        open.emplace(next, to);
        known->second[to] = here;
      }
    }
  }
  return known->second;
}

bool SimgridZones::over_fewest(std::size_t zone, std::int32_t source, std::int32_t target,
                               Route& found) {
  const auto& from = before(zone, source);
  std::vector<std::int32_t> points{target};
  while (points.back() != source) {
    const auto step = from.find(points.back());
    if (step == from.end()) {
      return false;
    }
    points.push_back(step->second);
  }
  std::ranges::reverse(points);
  for (std::size_t i = 1; i < points.size(); ++i) {
    const Route& step = zones_[zone].routes.at({points[i - 1], points[i]});
    if (i == 1) {
      found.source_gateway = step.source_gateway;
    } else if (found.target_gateway >= 0 && step.source_gateway >= 0 &&
               !route(found.target_gateway, step.source_gateway, found.links)) {
      return false;  // across a zone on the way, from gateway to gateway
    }
    found.links.insert(found.links.end(), step.links.begin(), step.links.end());
    found.target_gateway = step.target_gateway;
  }
  return true;
}

}  // namespace orrery::topology
