// SPDX-License-Identifier: Apache-2.0
#include "compat/astra/native.h"

#include <fmt/format.h>

#include <algorithm>

namespace orrery::astra {
namespace {

/// Links of a device, in one direction, over which its bandwidth spreads.
double links_of(DimensionKind kind, std::int64_t size) {
  switch (kind) {
    case DimensionKind::switched:
      return 1;
    case DimensionKind::fully_connected:
      return static_cast<double>(std::max<std::int64_t>(1, size - 1));
    case DimensionKind::ring:
    case DimensionKind::torus:
    case DimensionKind::mesh:
      return size > 2 ? 2 : 1;
  }
  return 1;
}

DimensionKind kind_of(Building building) {
  switch (building) {
    case Building::ring:
      return DimensionKind::ring;
    case Building::fully_connected:
      return DimensionKind::fully_connected;
    case Building::switched:
      return DimensionKind::switched;
  }
  return DimensionKind::ring;
}

Building building_of(DimensionKind kind) {
  if (kind == DimensionKind::switched) {
    return Building::switched;
  }
  return kind == DimensionKind::fully_connected ? Building::fully_connected : Building::ring;
}

}  // namespace

std::vector<NetworkDimension> native_dimensions(const std::vector<Dimension>& network) {
  std::vector<NetworkDimension> dimensions;
  for (const Dimension& from : network) {
    NetworkDimension to;
    to.name = fmt::format("{}", dimensions.size());
    to.kind = kind_of(from.building);
    to.size = from.size;
    to.bandwidth = Bandwidth(from.bandwidth.value() * links_of(to.kind, from.size));
    to.latency = from.latency * (to.kind == DimensionKind::switched ? 2 : 1);
    dimensions.push_back(std::move(to));
  }
  return dimensions;
}

std::vector<Dimension> astra_dimensions(const std::vector<NetworkDimension>& dimensions) {
  std::vector<Dimension> network;
  for (const NetworkDimension& from : dimensions) {
    const Bandwidth bandwidth(from.bandwidth.value() * from.send_efficiency /
                              links_of(from.kind, from.size));
    const bool switched = from.kind == DimensionKind::switched;
    network.push_back({building_of(from.kind), from.size, bandwidth,
                       Time(from.latency.value() / (switched ? 2 : 1))});
  }
  return network;
}

std::vector<NetworkDimension> message_dimensions(const Machine& machine) {
  std::vector<NetworkDimension> dimensions = machine.network;
  for (NetworkDimension& dimension : dimensions) {
    const auto best = std::max_element(
        dimension.protocols.begin(), dimension.protocols.end(),
        [](const Protocol& a, const Protocol& b) { return a.efficiency < b.efficiency; });
    if (best == dimension.protocols.end()) {
      dimension.latency += dimension.message_overhead;
      continue;
    }
    dimension.send_efficiency = best->efficiency;
    if (dimension.kind == DimensionKind::switched ||
        dimension.kind == DimensionKind::fully_connected) {
      dimension.latency = best->step_latency;
    }
  }
  return dimensions;
}

}  // namespace orrery::astra
