// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/units.h"
#include "machine/topology/link_graph.h"
#include "machine/topology/routing.h"

namespace orrery::packets {

/// Routes holds the links of all routes of packets, one route after another; a route is the place
/// of its first link and a count of links. Private to the folder.
class Routes {
 public:
  /// `graph` must outlive it.
  explicit Routes(const topology::LinkGraph& graph);

  const topology::LinkGraph& graph() const { return graph_; }
  const topology::GraphLink& link(std::int32_t number) const {
    return graph_.links[static_cast<std::size_t>(number)];
  }
  /// Returns the link back of a link's cable; -1: it has none.
  std::int32_t reverse(std::int32_t number) const {
    return reverse_[static_cast<std::size_t>(number)];
  }
  /// Returns the number of the link at a place.
  std::int32_t at(std::size_t place) const { return links_[place]; }
  Time serialisation(Bytes bytes, std::int32_t number) const {
    return bytes / link(number).bandwidth;
  }

  /// Adds a route whose links have their own rates; its place.
  std::uint32_t lay(std::span<const std::int32_t> links);
  /// Adds a route that passes its links at the rates of the hops, which may be lower; its place.
  std::uint32_t lay(std::span<const topology::Hop> hops);
  /// Adds the way back over the cables of a route; nothing where a cable does not lead back.
  std::optional<std::uint32_t> lay_back(std::uint32_t route, std::uint16_t hops);
  /// The cable of a link of some route does not lead back.
  bool lack_way_back() const;

  /// Routes pass some links at rates below the links' own.
  bool have_rates() const { return !rates_.empty(); }
  /// Returns the rate at a place. Requires have_rates().
  Bandwidth rate(std::size_t place) const { return Bandwidth(rates_[place]); }

 private:
  void add(std::int32_t number, Bandwidth rate);

  const topology::LinkGraph& graph_;
  std::vector<std::int32_t> links_;
  std::vector<double> rates_;  ///< by place; empty: all links have their own
  std::vector<std::int32_t> reverse_;
};

}  // namespace orrery::packets
