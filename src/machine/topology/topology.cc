// SPDX-License-Identifier: Apache-2.0
#include "machine/topology/topology.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace orrery {
namespace {

bool is_line(const NetworkDimension& dimension) {
  return dimension.kind == DimensionKind::ring || dimension.kind == DimensionKind::torus ||
         dimension.kind == DimensionKind::mesh;
}

/// Part of a device's bandwidth that one link of the dimension carries.
double link_share(const NetworkDimension& dimension) {
  if (dimension.kind == DimensionKind::fully_connected) {
    return 1.0 / static_cast<double>(std::max<std::int64_t>(1, dimension.size - 1));
  }
  return is_line(dimension) && dimension.size > 2 ? 0.5 : 1.0;
}

}  // namespace

Topology::Topology(std::vector<NetworkDimension> dimensions) : dimensions_(std::move(dimensions)) {
  for (std::size_t d = 0; d < dimensions_.size(); ++d) {
    strides_.push_back(devices_);
    devices_ *= dimensions_[d].size;
    const std::string& nic = dimensions_[d].nic;
    const auto same_nic = std::find_if(
        dimensions_.begin(), dimensions_.begin() + static_cast<long>(d),
        [&](const NetworkDimension& other) { return !nic.empty() && other.nic == nic; });
    const auto index = static_cast<std::size_t>(same_nic - dimensions_.begin());
    port_of_dimension_.push_back(index < d ? port_of_dimension_[index] : ports_++);
  }
}

std::int64_t Topology::coordinate(std::int64_t device, int dimension) const {
  return device / stride_of(dimension) % dimensions_[static_cast<std::size_t>(dimension)].size;
}

LinkId Topology::out_link(std::int64_t device, int dimension) const {
  const std::uint32_t port = port_of_dimension_[static_cast<std::size_t>(dimension)];
  return (static_cast<LinkId>(device) * ports_ + port) * 2;
}

LinkId Topology::in_link(std::int64_t device, int dimension) const {
  return out_link(device, dimension) + 1;
}

std::int64_t Topology::moved(std::int64_t device, int dimension, std::int64_t coordinate_to) const {
  return device + (coordinate_to - coordinate(device, dimension)) * stride_of(dimension);
}

Route Topology::route(std::int64_t source, std::int64_t destination) const {
  Route route;
  for (int d = 0; d < static_cast<int>(dimensions_.size()); ++d) {
    if (coordinate(source, d) != coordinate(destination, d)) {
      route.dimension = d;
    }
  }
  if (route.dimension < 0) {
    return route;
  }
  const NetworkDimension& outermost = dimensions_[static_cast<std::size_t>(route.dimension)];
  route.overhead = outermost.message_overhead;
  if (outermost.kind == DimensionKind::switched) {
    append_route(route, source, destination, route.dimension);
    return route;
  }
  std::int64_t at = source;
  for (int d = 0; d <= route.dimension; ++d) {
    const std::int64_t next = moved(at, d, coordinate(destination, d));
    if (next != at) {
      append_route(route, at, next, d);
      at = next;
    }
  }
  return route;
}

void Topology::append_route(Route& route, std::int64_t from, std::int64_t to, int dimension) const {
  const NetworkDimension& shape = dimensions_[static_cast<std::size_t>(dimension)];
  const double bandwidth = shape.bandwidth.value() * shape.send_efficiency * link_share(shape);
  route.seconds_per_byte = std::max(route.seconds_per_byte, 1.0 / bandwidth);
  if (!is_line(shape)) {
    route.links.push_back(out_link(from, dimension));
    route.links.push_back(in_link(to, dimension));
    route.latency += shape.latency;
    return;
  }
  const std::int64_t here = coordinate(from, dimension);
  const std::int64_t there = coordinate(to, dimension);
  const std::int64_t ahead = (there - here + shape.size) % shape.size;
  const bool closed = shape.kind != DimensionKind::mesh;
  const bool forward = closed ? ahead * 2 <= shape.size : there > here;
  const std::int64_t hops =
      forward ? (closed ? ahead : there - here) : (closed ? shape.size - ahead : here - there);
  std::int64_t at = from;
  for (std::int64_t hop = 0; hop < hops; ++hop) {
    route.links.push_back(forward ? out_link(at, dimension) : in_link(at, dimension));
    const std::int64_t next = coordinate(at, dimension) + (forward ? 1 : shape.size - 1);
    at = moved(at, dimension, next % shape.size);
    route.latency += shape.latency;
  }
  assert(at == to && "a ring route ends where it should");
}

std::vector<LinkId> Topology::collective_links(std::int64_t device, int dimension,
                                               std::int64_t count, std::int64_t stride) const {
  const NetworkDimension& shape = dimensions_[static_cast<std::size_t>(dimension)];
  const bool whole_ring = shape.kind != DimensionKind::mesh && count == shape.size;
  if (!is_line(shape) || whole_ring) {
    return {out_link(device, dimension), in_link(device, dimension)};
  }
  std::vector<LinkId> links;
  const std::int64_t position = coordinate(device, dimension) / stride % count;
  if (position + 1 == count) {
    return links;
  }
  std::int64_t at = device;
  for (std::int64_t hop = 0; hop < stride; ++hop) {
    const std::int64_t next = moved(at, dimension, (coordinate(at, dimension) + 1) % shape.size);
    links.push_back(out_link(at, dimension));
    links.push_back(in_link(next, dimension));
    at = next;
  }
  return links;
}

}  // namespace orrery
