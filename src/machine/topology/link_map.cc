// SPDX-License-Identifier: Apache-2.0
#include "machine/topology/link_map.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace orrery {
namespace {

std::int64_t ports_of(const NetworkDimension& dimension) {
  return dimension.kind == DimensionKind::fully_connected
             ? std::max<std::int64_t>(1, dimension.size - 1)
             : 2;
}

/// Links over which a device's bandwidth spreads in one direction.
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

LinkMap::LinkMap(std::vector<NetworkDimension> dimensions, SwitchReach reach)
    : dimensions_(std::move(dimensions)), reach_(reach) {
  std::int64_t stride = 1;
  for (const NetworkDimension& dimension : dimensions_) {
    devices_ *= dimension.size;
  }
  for (std::size_t d = 0; d < dimensions_.size(); ++d) {
    const NetworkDimension& dimension = dimensions_[d];
    Lines lines{.stride = stride,
                .first = links_,
                .first_class = classes_,
                .ports = static_cast<std::size_t>(ports_of(dimension)),
                .bandwidth = Bandwidth(dimension.bandwidth.value() * dimension.send_efficiency *
                                       share_of(dimension))};
    const bool switched = dimension.kind == DimensionKind::switched;
    const auto shared =
        std::find_if(dimensions_.begin(), dimensions_.begin() + static_cast<long>(d),
                     [&](const NetworkDimension& inner) {
                       return switched && !inner.nic.empty() && inner.nic == dimension.nic &&
                              inner.kind == dimension.kind;
                     });
    const auto inner = static_cast<std::size_t>(shared - dimensions_.begin());
    if (inner < d) {
      lines.first = lines_[inner].first;
      lines.first_class = lines_[inner].first_class;
    } else {
      links_ += lines.ports * static_cast<std::size_t>(devices_);
      classes_ += lines.ports;
    }
    lines_.push_back(lines);
    stride *= dimension.size;
  }
}

std::int64_t LinkMap::coordinate(std::int64_t device, int dimension) const {
  return device / lines(dimension).stride % dimensions_[static_cast<std::size_t>(dimension)].size;
}

std::int64_t LinkMap::links_out(int dimension) const {
  const NetworkDimension& shape = dimensions_[static_cast<std::size_t>(dimension)];
  const bool one = shape.kind == DimensionKind::switched || shape.size <= 2;
  return one ? 1 : static_cast<std::int64_t>(lines(dimension).ports);
}

int LinkMap::dimension_of(LinkId link) const {
  for (std::size_t d = 0; d < lines_.size(); ++d) {
    const std::size_t end = lines_[d].first + lines_[d].ports * static_cast<std::size_t>(devices_);
    if (link >= lines_[d].first && link < end) {
      return static_cast<int>(d);
    }
  }
  return -1;
}

LinkId LinkMap::class_of(LinkId link) const {
  const Lines& of = lines(dimension_of(link));
  return static_cast<LinkId>(of.first_class + (link - of.first) % of.ports);
}

int LinkMap::dimension_of_class(LinkId link_class) const {
  int d = 0;
  while (link_class < lines(d).first_class || link_class >= lines(d).first_class + lines(d).ports) {
    ++d;
  }
  return d;
}

LinkId LinkMap::link(std::int64_t device, int dimension, std::int64_t port) const {
  const Lines& of = lines(dimension);
  return static_cast<LinkId>(of.first + static_cast<std::size_t>(device) * of.ports +
                             static_cast<std::size_t>(port));
}

int LinkMap::outermost(std::int64_t source, std::int64_t destination) const {
  int d = static_cast<int>(dimensions_.size()) - 1;
  while (d >= 0 && coordinate(source, d) == coordinate(destination, d)) {
    --d;
  }
  return d;
}

void LinkMap::route(std::int64_t source, std::int64_t destination, std::vector<Hop>& hops) const {
  const int last = outermost(source, destination);
  if (last >= 0 && reach_ == SwitchReach::everywhere &&
      dimensions_[static_cast<std::size_t>(last)].kind == DimensionKind::switched) {
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

void LinkMap::switch_route(std::int64_t device, int dimension, std::vector<Hop>& hops) const {
  assert(dimensions_[static_cast<std::size_t>(dimension)].kind == DimensionKind::switched);
  cross_switch(device, device, dimension, hops);
}

void LinkMap::cross_switch(std::int64_t from, std::int64_t to, int dimension,
                           std::vector<Hop>& hops) const {
  const Time latency = dimensions_[static_cast<std::size_t>(dimension)].latency;
  const Bandwidth bandwidth = lines(dimension).bandwidth;
  const Time up(latency.value() / 2);
  hops.push_back({link(from, dimension, 0), bandwidth, up});
  hops.push_back({link(to, dimension, 1), bandwidth, latency - up});
}

void LinkMap::cross(std::int64_t from, std::int64_t to, int dimension,
                    std::vector<Hop>& hops) const {
  const NetworkDimension& shape = dimensions_[static_cast<std::size_t>(dimension)];
  const Bandwidth bandwidth = lines(dimension).bandwidth;
  if (shape.kind == DimensionKind::switched) {
    cross_switch(from, to, dimension, hops);
  } else if (shape.kind == DimensionKind::fully_connected) {
    const std::int64_t ahead =
        (coordinate(to, dimension) - coordinate(from, dimension) + shape.size) % shape.size;
    hops.push_back({link(from, dimension, ahead - 1), bandwidth, shape.latency});
  } else {
    cross_line(from, to, dimension, hops);
  }
}

/// Rings, and meshes of one extent.
void LinkMap::cross_line(std::int64_t from, std::int64_t to, int dimension,
                         std::vector<Hop>& hops) const {
  const NetworkDimension& shape = dimensions_[static_cast<std::size_t>(dimension)];
  const bool closed = shape.kind != DimensionKind::mesh;
  const std::int64_t there = coordinate(to, dimension);
  std::int64_t here = coordinate(from, dimension);
  const std::int64_t ahead = (there - here + shape.size) % shape.size;
  const bool forward = closed ? ahead * 2 <= shape.size : there > here;
  std::int64_t at = from;
  while (here != there) {
    hops.push_back(
        {link(at, dimension, forward ? 0 : 1), lines(dimension).bandwidth, shape.latency});
    const std::int64_t next = (here + (forward ? 1 : shape.size - 1)) % shape.size;
    at += (next - here) * lines(dimension).stride;
    here = next;
  }
}

}  // namespace orrery
