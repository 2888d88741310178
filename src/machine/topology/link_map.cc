// SPDX-License-Identifier: Apache-2.0
#include "machine/topology/link_map.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "machine/topology/routing.h"

namespace orrery::topology {
namespace {

constexpr std::int64_t kUp = 0;
constexpr std::int64_t kDown = 1;
constexpr std::int64_t kForward = 0;
constexpr std::int64_t kBackward = 1;

bool is_switch(const NetworkDimension& dimension) {
  return dimension.kind == DimensionKind::switched;
}

std::size_t ports_of(const NetworkDimension& dimension) {
  return dimension.kind == DimensionKind::fully_connected
             ? static_cast<std::size_t>(std::max<std::int64_t>(1, dimension.size - 1))
             : 2;
}

/// Part of a device's bandwidth that one link carries.
double share_of(const NetworkDimension& dimension) {
  switch (dimension.kind) {
    case DimensionKind::switched:
      return 1;
    case DimensionKind::fully_connected:
      return 1.0 / static_cast<double>(ports_of(dimension));
    case DimensionKind::ring:
    case DimensionKind::torus:
    case DimensionKind::mesh:
      return dimension.size > 2 ? 0.5 : 1.0;
  }
  return 1;
}

}  // namespace

LinkMap::LinkMap(std::vector<NetworkDimension> dimensions) : dimensions_(std::move(dimensions)) {
  for (const NetworkDimension& dimension : dimensions_) {
    devices_ *= dimension.size;
  }
  std::int64_t stride = 1;
  for (int d = 0; d < static_cast<int>(dimensions_.size()); ++d) {
    const NetworkDimension& dimension = shape(d);
    const double efficiency = dimension.send_efficiency;
    Lines lines{.stride = stride,
                .link = Bandwidth(dimension.bandwidth.value() * efficiency * share_of(dimension)),
                .device = dimension.bandwidth * efficiency,
                .node_rate = dimension.node_bandwidth * efficiency};
    const int port = shared_port(d);
    lines.own = port >= 0 && is_switch(dimension) ? port : add_bank(ports_of(dimension), 1, d);
    lines.port = is_switch(dimension) ? -1 : port;
    if (dimension.node_bandwidth > Bandwidth(0)) {
      lines.node = add_bank(2, stride, d);
    }
    for (int inner = 0; inner < d && !dimension.through.empty(); ++inner) {
      lines.through = shape(inner).name == dimension.through ? inner : lines.through;
    }
    lines_.push_back(lines);
    stride *= dimension.size;
  }
}

int LinkMap::add_bank(std::size_t ports, std::int64_t owner, int dimension) {
  const std::size_t count = ports * static_cast<std::size_t>(devices_ / owner);
  banks_.push_back({links_, ports, count, owner, classes_, dimension});
  links_ += count;
  classes_ += ports;
  return static_cast<int>(banks_.size()) - 1;
}

/// Returns the port of the dimension's nic; -1 when no other dimension has the same.
int LinkMap::shared_port(int dimension) {
  const std::string& nic = shape(dimension).nic;
  const auto same = [&](const NetworkDimension& other) { return other.nic == nic; };
  if (nic.empty() || std::count_if(dimensions_.begin(), dimensions_.end(), same) < 2) {
    return -1;
  }
  const auto first = static_cast<int>(std::find_if(dimensions_.begin(), dimensions_.end(), same) -
                                      dimensions_.begin());
  if (first == dimension) {
    return add_bank(2, 1, dimension);
  }
  return is_switch(shape(first)) ? lines(first).own : lines(first).port;
}

std::int64_t LinkMap::coordinate(std::int64_t device, int dimension) const {
  return device / lines(dimension).stride % shape(dimension).size;
}

const LinkMap::Bank& LinkMap::bank_of(LinkId link) const {
  const auto after =
      std::upper_bound(banks_.begin(), banks_.end(), std::size_t{link},
                       [](std::size_t id, const Bank& bank) { return id < bank.first; });
  assert(after != banks_.begin() && link < links_ && "a link of this map");
  return *(after - 1);
}

LinkId LinkMap::same_of(LinkId link, std::int64_t device) const {
  const Bank& bank = bank_of(link);
  const std::size_t port = (link - bank.first) % bank.ports;
  return static_cast<LinkId>(bank.first +
                             static_cast<std::size_t>(device / bank.owner) * bank.ports + port);
}

std::int64_t LinkMap::first_owner(LinkId link) const {
  const Bank& bank = bank_of(link);
  return static_cast<std::int64_t>((link - bank.first) / bank.ports) * bank.owner;
}

int LinkMap::dimension_of(LinkId link) const {
  return bank_of(link).dimension;
}

LinkId LinkMap::class_of(LinkId link) const {
  const Bank& bank = bank_of(link);
  return static_cast<LinkId>(bank.first_class + (link - bank.first) % bank.ports);
}

LinkId LinkMap::link(int bank, std::int64_t device, std::int64_t port) const {
  const Bank& of = banks_[static_cast<std::size_t>(bank)];
  return static_cast<LinkId>(of.first + static_cast<std::size_t>(device / of.owner) * of.ports +
                             static_cast<std::size_t>(port));
}

LinkId LinkMap::up(std::int64_t device, int dimension) const {
  assert(is_switch(shape(dimension)));
  return link(lines(dimension).own, device, kUp);
}

LinkId LinkMap::down(std::int64_t device, int dimension) const {
  assert(is_switch(shape(dimension)));
  return link(lines(dimension).own, device, kDown);
}

LinkId LinkMap::direct(std::int64_t device, int dimension, std::int64_t ahead) const {
  assert(shape(dimension).kind == DimensionKind::fully_connected);
  return link(lines(dimension).own, device, ahead - 1);
}

LinkId LinkMap::port_out(std::int64_t device, int dimension) const {
  return link(lines(dimension).port, device, kUp);
}

LinkId LinkMap::port_in(std::int64_t device, int dimension) const {
  return link(lines(dimension).port, device, kDown);
}

LinkId LinkMap::node_up(std::int64_t device, int dimension) const {
  return link(lines(dimension).node, device, kUp);
}

LinkId LinkMap::node_down(std::int64_t device, int dimension) const {
  return link(lines(dimension).node, device, kDown);
}

int LinkMap::outermost(std::int64_t source, std::int64_t destination) const {
  int d = static_cast<int>(dimensions_.size()) - 1;
  while (d >= 0 && coordinate(source, d) == coordinate(destination, d)) {
    --d;
  }
  return d;
}

void LinkMap::lay(const Wires& wires) {
  if (wires.graph) {
    assert(wires.graph->hosts >= devices_ && "the machine's reader has compared them");
    router_ = std::make_shared<Router>(*wires.graph, wires.routing, wires.seed);
    graph_links_ = wires.graph->links.size();
  }
}

const LinkGraph* LinkMap::graph() const {
  return router_ ? &router_->graph() : nullptr;
}

Routing LinkMap::routing() const {
  assert(router_ && "something has been laid");
  return router_->routing();
}

bool LinkMap::sprays() const {
  return router_ && router_->routing() == Routing::spray;
}

void LinkMap::route(std::int64_t source, std::int64_t destination, std::vector<Hop>& hops) const {
  const int last = outermost(source, destination);
  if (router_ && last >= 0) {
    const std::size_t first = hops.size();
    const bool found = router_->route(
        static_cast<std::int32_t>(source), static_cast<std::int32_t>(destination),
        static_cast<std::uint64_t>(source) << 32U | static_cast<std::uint64_t>(destination), hops);
    assert(found && "the machine's reader has tried");
    (void)found;
    for (std::size_t h = first; h < hops.size(); ++h) {
      const float reached = router_->graph().links[hops[h].link].reached;
      hops[h].bandwidth = hops[h].bandwidth * (shape(last).send_efficiency / double{reached});
    }
    return;
  }
  if (last >= 0 && is_switch(shape(last))) {
    cross(source, destination, last, hops);
    return;
  }
  std::int64_t at = source;
  for (int d = 0; d <= last; ++d) {
    const std::int64_t next =
        at + (coordinate(destination, d) - coordinate(at, d)) * lines(d).stride;
    if (next != at) {
      cross(at, next, d, hops);
      at = next;
    }
  }
  assert(at == destination && "every differing dimension was crossed");
}

Route LinkMap::message(std::int64_t source, std::int64_t destination) const {
  Route route;
  route.dimension = outermost(source, destination);
  if (route.dimension < 0) {
    return route;
  }
  route.overhead = shape(route.dimension).message_overhead;
  std::vector<Hop> hops;
  this->route(source, destination, hops);
  for (const Hop& hop : hops) {  // dimensions on one nic repeat its port
    route.latency += hop.latency;
    const auto known = std::find_if(route.links.begin(), route.links.end(),
                                    [&](const LinkUse& use) { return use.link == hop.link; });
    const auto use = known == route.links.end() ? route.links.insert(known, {hop.link, 0}) : known;
    use->weight += 1 / hop.bandwidth.value();
    route.seconds_per_byte = std::max(route.seconds_per_byte, use->weight);
  }
  for (LinkUse& use : route.links) {
    use.weight = counted(use.weight / route.seconds_per_byte);
  }
  return route;
}

void LinkMap::cross_switch(std::int64_t from, std::int64_t to, int dimension,
                           std::vector<Hop>& hops) const {
  const Lines& of = lines(dimension);
  const Time latency = shape(dimension).latency;
  const Time half(latency.value() / 2);
  if (of.through >= 0) {
    hops.push_back({up(from, of.through), lines(of.through).device, Time(0)});
  }
  hops.push_back({up(from, dimension), of.link, half});
  if (of.node >= 0) {
    hops.push_back({node_up(from, dimension), of.node_rate, Time(0)});
    hops.push_back({node_down(to, dimension), of.node_rate, Time(0)});
  }
  hops.push_back({down(to, dimension), of.link, latency - half});
  if (of.through >= 0) {
    hops.push_back({down(to, of.through), lines(of.through).device, Time(0)});
  }
}

void LinkMap::pass(std::int64_t from, std::int64_t to, int dimension, LinkId own,
                   std::vector<Hop>& hops) const {
  const Lines& of = lines(dimension);
  if (of.port >= 0) {
    hops.push_back({port_out(from, dimension), of.device, Time(0)});
  }
  hops.push_back({own, of.link, shape(dimension).latency});
  if (of.port >= 0) {
    hops.push_back({port_in(to, dimension), of.device, Time(0)});
  }
}

void LinkMap::cross(std::int64_t from, std::int64_t to, int dimension,
                    std::vector<Hop>& hops) const {
  const NetworkDimension& of = shape(dimension);
  if (is_switch(of)) {
    cross_switch(from, to, dimension, hops);
  } else if (of.kind == DimensionKind::fully_connected) {
    const std::int64_t ahead =
        (coordinate(to, dimension) - coordinate(from, dimension) + of.size) % of.size;
    pass(from, to, dimension, direct(from, dimension, ahead), hops);
  } else {
    cross_line(from, to, dimension, hops);
  }
}

/// Rings, and meshes of one extent.
void LinkMap::cross_line(std::int64_t from, std::int64_t to, int dimension,
                         std::vector<Hop>& hops) const {
  const std::int64_t size = shape(dimension).size;
  const bool closed = shape(dimension).kind != DimensionKind::mesh;
  const std::int64_t there = coordinate(to, dimension);
  std::int64_t here = coordinate(from, dimension);
  const std::int64_t ahead = (there - here + size) % size;
  const bool forward = closed ? ahead * 2 <= size : there > here;
  std::int64_t at = from;
  while (here != there) {
    const std::int64_t next = (here + (forward ? 1 : size - 1)) % size;
    const std::int64_t then = at + (next - here) * lines(dimension).stride;
    pass(at, then, dimension, link(lines(dimension).own, at, forward ? kForward : kBackward), hops);
    at = then;
    here = next;
  }
}

}  // namespace orrery::topology
