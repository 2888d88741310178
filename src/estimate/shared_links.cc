// SPDX-License-Identifier: Apache-2.0
#include "estimate/shared_links.h"

#include <algorithm>
#include <numeric>
#include <set>

namespace orrery::estimate {
namespace {

void raise_to(std::vector<PortLoad>& ports, topology::LinkId port, double load) {
  const auto known = std::find_if(ports.begin(), ports.end(),
                                  [&](const PortLoad& other) { return other.port == port; });
  if (known == ports.end()) {
    ports.push_back({port, load});
  } else {
    known->load = std::max(known->load, load);
  }
}

std::vector<std::int64_t> ranks_of(const topology::LinkMap& links) {
  std::vector<std::int64_t> ranks(static_cast<std::size_t>(links.devices()));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

}  // namespace

bool is_line(const topology::NetworkDimension& dimension) {
  return dimension.kind == topology::DimensionKind::ring ||
         dimension.kind == topology::DimensionKind::torus ||
         dimension.kind == topology::DimensionKind::mesh;
}

bool is_shared(const topology::NetworkDimension& dimension) {
  return is_line(dimension) || dimension.node_bandwidth > Bandwidth(0);
}

PortPhase MessageWay::phase(Bytes bytes) const {
  return {.serialisation = from_seconds(static_cast<double>(bytes.value()) * seconds_per_byte),
          .latency = latency,
          .ports = ports,
          .arrival = arrival};
}

Time MessageWay::least(Bytes bytes) const {
  return from_seconds(static_cast<double>(bytes.value()) * least_seconds_per_byte) + least_latency;
}

SharedLinks::SharedLinks(const machine::Machine& machine)
    : links_(machine.network), ranks_(ranks_of(links_)), occupancy_(links_, ranks_) {
  crossing_ = std::any_of(machine.network.begin(), machine.network.end(), is_shared);
  if (crossing_) {
    on_link_.resize(links_.links());
  }
}

bool SharedLinks::crossing(const std::vector<collective::Extent>& extents) const {
  return std::any_of(extents.begin(), extents.end(), [&](const collective::Extent& extent) {
    return is_shared(links_.dimensions()[static_cast<std::size_t>(extent.dimension)]);
  });
}

bool SharedLinks::owns(std::int64_t device, topology::LinkId link) const {
  const std::int64_t first = links_.first_owner(link);
  return first <= device && device < first + links_.owners(link);
}

void SharedLinks::put(const std::vector<topology::LinkUse>& uses, double OnLink::*whose) {
  for (const topology::LinkUse& use : uses) {
    OnLink& here = on_link_[use.link];
    if (here.stage == 0 && here.all == 0) {
      used_.push_back(use.link);
    }
    here.*whose += use.weight;
  }
}

void SharedLinks::clear() {
  for (const topology::LinkId link : used_) {
    on_link_[link] = {};
  }
  used_.clear();
}

void SharedLinks::raise(std::vector<PortLoad>& ports, topology::LinkId link, double load) const {
  const topology::LinkId port = links_.class_of(link);
  raise_to(ports, port, load);
  if (is_line(links_.dimensions()[static_cast<std::size_t>(links_.dimension_of(link))])) {
    raise_to(ports, port + static_cast<topology::LinkId>(links_.classes()), load);
  }
}

void SharedLinks::raise(std::vector<PortLoad>& out, std::vector<PortLoad>& in, const Pair& message,
                        const topology::LinkUse& use) const {
  const double load = crossing_ ? on_link_[use.link].stage : use.weight;
  const topology::LinkId port = links_.class_of(use.link);
  if (owns(message.to, use.link)) {
    raise_to(in, port, load);
    return;
  }
  raise_to(out, port, load);
  if (is_line(links_.dimensions()[static_cast<std::size_t>(links_.dimension_of(use.link))])) {
    raise_to(in, port + static_cast<topology::LinkId>(links_.classes()), load);
  }
}

std::vector<PortLoad> SharedLinks::loads(const collective::CollectivePhase& phase,
                                         const GroupMembers& group) const {
  std::vector<PortLoad> ports;
  for (const topology::LinkUse& use : occupancy_.phase(phase, group)) {
    raise(ports, use.link, use.weight);
  }
  return ports;
}

std::vector<PortLoad> SharedLinks::loads(const collective::CollectivePhase& phase, Crowd& crowd) {
  for (const GroupMembers& group : crowd.stage) {
    put(occupancy_.phase(phase, group), &OnLink::stage);
  }
  for (const GroupMembers& group : crowd.all) {
    put(occupancy_.phase(phase, group), &OnLink::all);
  }
  std::vector<PortLoad> ports;
  for (const topology::LinkId link : used_) {
    const OnLink& here = on_link_[link];
    if (here.stage > 0) {
      crowd.crosses = crowd.crosses || here.all > here.stage;
      raise(ports, link, here.stage + (here.all - here.stage) * crowd.meanwhile);
    }
  }
  clear();
  return ports;
}

std::uint32_t SharedLinks::port(int dimension, bool up) const {
  return links_.class_of(up ? links_.up(0, dimension) : links_.down(0, dimension));
}

std::vector<std::int64_t> SharedLinks::distance(const Pair& message) const {
  std::vector<std::int64_t> steps;
  for (int d = 0; d < static_cast<int>(links_.dimensions().size()); ++d) {
    const std::int64_t size = links_.dimensions()[static_cast<std::size_t>(d)].size;
    const std::int64_t ahead =
        links_.coordinate(message.to, d) - links_.coordinate(message.from, d);
    steps.push_back((ahead + size) % size);
  }
  return steps;
}

std::vector<PortLoad> SharedLinks::ports_of(const topology::Route& route) const {
  std::vector<PortLoad> ports;
  for (const topology::LinkUse& use : route.links) {
    raise_to(ports, links_.class_of(use.link), use.weight);
  }
  return ports;
}

MessageWay SharedLinks::slowest(std::vector<Pair> messages) {
  if (!crossing_) {
    std::set<std::vector<std::int64_t>> known;
    std::erase_if(messages,
                  [&](const Pair& message) { return !known.insert(distance(message)).second; });
  }
  MessageWay way;
  std::vector<topology::Route> routes;
  for (const Pair& message : messages) {
    const topology::Route& route =
        routes.emplace_back(occupancy_.message(message.from, message.to));
    const Time latency = route.latency + route.overhead;
    const bool first = routes.size() == 1;
    way.latency = std::max(way.latency, latency);
    way.seconds_per_byte = std::max(way.seconds_per_byte, route.seconds_per_byte);
    way.least_latency = first ? latency : std::min(way.least_latency, latency);
    way.least_seconds_per_byte = first
                                     ? route.seconds_per_byte
                                     : std::min(way.least_seconds_per_byte, route.seconds_per_byte);
    way.alike = way.alike && ports_of(route) == ports_of(routes.front());
    if (crossing_) {
      put(route.links, &OnLink::stage);
    }
  }
  for (std::size_t i = 0; i < messages.size(); ++i) {
    for (const topology::LinkUse& use : routes[i].links) {
      raise(way.ports, way.arrival, messages[i], use);
    }
  }
  clear();
  return way;
}

}  // namespace orrery::estimate
