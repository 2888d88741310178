// SPDX-License-Identifier: Apache-2.0
/// Says where the ports of routers of a known shape lead.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "machine/network/flit/router_graph.h"

namespace orrery::flit {

inline constexpr std::uint32_t kNoChannel = UINT32_MAX;

/// RouterPorts numbers the ports of every router alike: of grids up and down each dimension, of
/// flattened butterflies a place of each dimension, of stages k up and k down, of dragonflies the
/// group's routers and then the other groups.
class RouterPorts {
 public:
  RouterPorts() = default;
  explicit RouterPorts(const RouterGraph& graph);

  /// Returns the number of dimensions that routers have coordinates in: 0 but of grids and
  /// flattened butterflies.
  std::size_t dimensions() const { return dimensions_; }
  std::int32_t coordinate(std::uint32_t router, std::size_t dimension) const {
    return coordinates_[router * dimensions_ + dimension];
  }
  /// Returns the channel that a router's port leads to; kNoChannel where it has none.
  std::uint32_t channel(std::uint32_t router, std::size_t port) const {
    return channels_[router * radix_ + port];
  }

 private:
  std::size_t dimensions_ = 0;
  std::size_t radix_ = 0;
  std::vector<std::int32_t> coordinates_;  ///< by router and dimension
  std::vector<std::uint32_t> channels_;    ///< by router and port
};

}  // namespace orrery::flit
