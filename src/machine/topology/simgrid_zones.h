// SPDX-License-Identifier: Apache-2.0
/// Nested zones of a SimGrid platform, and the links from host to host that follow from their
/// routing. Private to the folder.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "machine/topology/link_graph.h"

namespace orrery::topology {

/// Says how a zone joins what is in it.
enum class ZoneRouting : std::uint8_t {
  none,
  full,      ///< by the stated routes
  shortest,  ///< over stated routes, as few links as there are (Floyd, Dijkstra)
  cluster,   ///< up, over the backbone, down
};

/// Hosts, routers and zones are points; each is in one zone.
class SimgridZones {
 public:
  struct Route {
    std::vector<std::int32_t> links;
    std::int32_t source_gateway =
        -1;  ///< points inside of the zones that are joined; -1: themselves
    std::int32_t target_gateway = -1;
  };
  struct Zone {
    ZoneRouting routing = ZoneRouting::none;
    std::map<std::pair<std::int32_t, std::int32_t>, Route> routes;  ///< by points
    /// Links of a cluster's points, and one that all share or -1.
    std::map<std::int32_t, std::vector<std::int32_t>> up;
    std::map<std::int32_t, std::vector<std::int32_t>> down;
    std::int32_t backbone = -1;
  };

  /// Opens a zone inside another (-1: the platform), with the point that it is there.
  std::size_t open(std::int32_t parent_zone, ZoneRouting routing);
  Zone& zone(std::size_t index) { return zones_[index]; }
  std::int32_t point_of(std::size_t zone) const { return point_of_zone_[zone]; }
  std::int32_t add_point(std::size_t zone);
  /// Returns whether a zone is directly in another, and whether at any depth.
  bool is_in(std::size_t zone, std::size_t outer) const {
    return parents_[zone] == static_cast<std::int32_t>(outer);
  }
  bool is_within(std::size_t zone, std::size_t outer) const {
    return parents_[zone] >= 0 &&
           (is_in(zone, outer) || is_within(static_cast<std::size_t>(parents_[zone]), outer));
  }

  /// Appends the links from a point to another; returns false where the zones state no route.
  bool route(std::int32_t source, std::int32_t target, std::vector<std::int32_t>& links);

 private:
  /// Finds a route between points of one zone.
  bool local(std::size_t zone, std::int32_t source, std::int32_t target, Route& found);
  bool over_cluster(const Zone& zone, std::int32_t source, std::int32_t target, Route& found) const;
  bool over_fewest(std::size_t zone, std::int32_t source, std::int32_t target, Route& found);
  /// Returns, by point, the one before it on the way from `source` over the fewest links.
  const std::map<std::int32_t, std::int32_t>& before(std::size_t zone, std::int32_t source);
  std::vector<std::size_t> zones_around(std::int32_t point) const;

  std::vector<Zone> zones_;
  std::vector<std::int32_t> parents_;        ///< by zone; -1: none
  std::vector<std::int32_t> point_of_zone_;  ///< of the outermost -1
  std::vector<std::size_t> zone_of_point_;
  std::map<std::pair<std::size_t, std::int32_t>, std::map<std::int32_t, std::int32_t>> before_;
};

}  // namespace orrery::topology
