// SPDX-License-Identifier: Apache-2.0
/// Small networks with round numbers for the tests of this folder.
#pragma once

#include <utility>
#include <vector>

#include "collective/cost.h"

namespace orrery::testing {

/// 100 GB/s, 1 us a hop: 1 MB takes 10 us.
inline topology::NetworkDimension dimension_of(topology::DimensionKind kind, std::int64_t size,
                                               std::vector<std::int64_t> shape = {}) {
  topology::NetworkDimension dimension;
  dimension.kind = kind;
  dimension.size = size;
  dimension.shape = std::move(shape);
  dimension.bandwidth = 100_GBps;
  dimension.latency = 1_us;
  return dimension;
}

inline machine::Machine bare_machine(std::vector<topology::NetworkDimension> network) {
  machine::Machine machine;
  machine.network = std::move(network);
  return machine;
}

/// Nodes of `inside` devices at 100 GB/s and 1 us; between nodes 10 GB/s and 5 us per device.
inline machine::Machine cluster_of(std::int64_t inside, std::int64_t nodes) {
  machine::Machine machine = bare_machine({dimension_of(topology::DimensionKind::switched, inside),
                                           dimension_of(topology::DimensionKind::switched, nodes)});
  machine.network[1].bandwidth = 10_GBps;
  machine.network[1].latency = 5_us;
  return machine;
}

inline constexpr Bytes kMegabyte{1'000'000};

}  // namespace orrery::testing
