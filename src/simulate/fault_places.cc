// SPDX-License-Identifier: Apache-2.0
#include "simulate/fault_places.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <ranges>
#include <string>
#include <utility>

#include "base/reader.h"
#include "machine/network/link_faults.h"
#include "machine/topology/link_map.h"

namespace orrery::simulate {
namespace {

using topology::LinkMap;

/// The parts of "rank3->nic": first and second end, and whether both ways are meant.
struct LinkName {
  std::string from;
  std::string to;
  bool both = false;
};

LinkName parse_link(const std::string& name) {
  const std::size_t arrow = std::min(name.find("->"), name.find("--"));
  if (arrow == std::string::npos) {
    return {};
  }
  return {name.substr(0, arrow), name.substr(arrow + 2), name[arrow + 1] == '-'};
}

std::vector<std::size_t> links_named(const LinkMap& map, const std::string& name) {
  std::vector<std::size_t> links;
  if (name == "all") {
    links.resize(map.links());
    std::iota(links.begin(), links.end(), std::size_t{0});
    return links;
  }
  const LinkName wanted = parse_link(name);
  const auto number = [&](const std::string& end) -> std::int64_t {
    constexpr std::string_view kRank = "rank";
    if (!end.starts_with(kRank)) {
      return -1;
    }
    const auto rank = parse_integer(std::string_view(end).substr(kRank.size()));
    return rank && *rank < map.devices() ? *rank : -1;
  };
  for (int d = 0; d < static_cast<int>(map.dimensions().size()); ++d) {
    const topology::NetworkDimension& dimension = map.dimensions()[static_cast<std::size_t>(d)];
    if (dimension.kind != topology::DimensionKind::switched) {
      continue;
    }
    const std::int64_t up = wanted.to == dimension.name ? number(wanted.from) : -1;
    const std::int64_t down = wanted.from == dimension.name ? number(wanted.to)
                              : wanted.both                 ? up
                                                            : -1;
    if (up >= 0) {
      links.push_back(map.up(up, d));
    }
    if (down >= 0) {
      links.push_back(map.down(down, d));
    }
  }
  return links;
}

std::vector<std::size_t> links_of_rank(const LinkMap& map, std::int64_t rank) {
  std::vector<std::size_t> links;
  for (std::size_t link = 0; link < map.links(); ++link) {
    const auto id = static_cast<topology::LinkId>(link);
    if (map.owners(id) == 1 && map.first_owner(id) == rank) {
      links.push_back(link);
    }
  }
  return links;
}

}  // namespace

faults::Places fault_places(const machine::Machine& machine, std::string_view network,
                            bool links_change) {
  const auto map = std::make_shared<const LinkMap>(machine.network);
  faults::Places places;
  if (machine.wires.graph && links_change) {
    places = network::places_of(*machine.wires.graph);
  } else if (links_change) {
    places.links = map->links();
    places.links_named = [map](const std::string& name) { return links_named(*map, name); };
    places.links_of_rank = [map](std::int64_t rank) { return links_of_rank(*map, rank); };
    places.link_example = fmt::format(
        "rank0->{} of a switched dimension",
        fmt::join(map->dimensions() | std::views::transform(&topology::NetworkDimension::name),
                  " or "));
  } else {
    places.no_links = fmt::format(
        "a straggler or a node; or network flow: links of network {} do not change while it runs",
        network);
  }
  places.compute = true;
  places.ranks = map->devices();
  places.ranks_of_node = machine.network.size() < 2 ? 1 : machine.network.front().size;
  return places;
}

}  // namespace orrery::simulate
