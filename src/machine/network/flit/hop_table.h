// SPDX-License-Identifier: Apache-2.0
/// Tables of the channels by which a router's ways to all others begin.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "machine/network/flit/router_graph.h"

namespace orrery::flit {

/// A HopTable has one channel for every router and goal, in one or two phases: up*/down* goes on
/// in phase 1 once it has gone down.
class HopTable {
 public:
  HopTable() = default;
  /// Returns the shortest way by latency; of equally long ones that whose channels come first.
  static HopTable shortest(const RouterGraph& graph);
  /// Returns the shortest ways that go up and then down. A channel goes up if it leads to a lower
  /// level of the tree that is breadth first from router 0, or to a lower number on the same level.
  /// Source: Schroeder et al., Autonet, 1991.
  static HopTable up_down(const RouterGraph& graph);

  /// Requires a goal that can be reached.
  std::uint32_t channel(std::uint32_t phase, std::uint32_t router, std::uint32_t goal) const {
    return table_[(phase * routers_ + router) * routers_ + goal];
  }
  /// Returns whether a channel goes down; of shortest() none does.
  bool is_down(std::uint32_t channel) const { return !is_up_.empty() && is_up_[channel] == 0; }
  /// Returns the first two routers, where a node injects and where one is reached, without a way
  /// from the first to the second. Other routers may be cut off.
  std::optional<std::pair<std::int32_t, std::int32_t>> cut_off(const RouterGraph& graph) const;

 private:
  std::size_t routers_ = 0;
  std::vector<std::uint32_t> table_;  ///< by phase, router and goal
  std::vector<std::int32_t> is_up_;   ///< by channel
};

/// All channels of a router that lead a step nearer to a goal, in their order.
class NearerChannels {
 public:
  NearerChannels() = default;
  explicit NearerChannels(const RouterGraph& graph);

  std::span<const std::uint32_t> of(std::uint32_t router, std::uint32_t goal) const {
    const std::size_t at = std::size_t{router} * routers_ + goal;
    return std::span(channels_).subspan(begin_[at], begin_[at + 1] - begin_[at]);
  }

 private:
  std::size_t routers_ = 0;
  std::vector<std::uint32_t> channels_;  ///< by router and goal
  std::vector<std::size_t> begin_;
};

}  // namespace orrery::flit
