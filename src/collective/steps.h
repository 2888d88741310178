// SPDX-License-Identifier: Apache-2.0
/// A StepCount is what one algorithm asks of the members of one dimension, apart from any bandwidth
/// or latency.
#pragma once

#include <cstdint>
#include <optional>

#include "collective/cost.h"
#include "graph/workload.h"
#include "machine/topology/dimension.h"

namespace orrery::collective {

/// Counts of one collective in one dimension, on the path that decides its time:
///   time = steps * step_latency + further_messages * message + further_hops * latency
///        + load * S / bandwidth
/// where `message` is the step latency of a listed protocol, else the message overhead.
struct StepCount {
  double steps = 0;             ///< messages that wait for each other
  double further_messages = 0;  ///< that one member sends within a step, beyond the first
  double further_hops = 0;      ///< links that these messages pass, beyond one per step
  /// Time for which the busiest link is busy, in units of S / bandwidth. `bandwidth` is that of all
  /// links of a device in the dimension together, so a link of a device with n links has load * n
  /// for its own bytes.
  double load = 0;
  /// The same of a device's port, up or down, where all its links of the dimension share one (nic).
  double port = 0;
};

/// Says how the members of an extent lie on the links of their dimension.
///
///   switched   every member reaches the switch with its whole bandwidth
///   complete   a link to each of the size-1 others
///   cycle      closed rings: a whole ring, or whole axes of a torus; both directions in use
///   line       an open line: part of a ring, a mesh. What a ring algorithm sends from the last
///              member to the first goes back over the links of the other direction, so there is
///              only one ring and it has half of a device's bandwidth in the axis. Two members
///              opposite each other on a ring too: both send forwards (LinkMap)
///
/// One group alone: that groups between its members use the same links is for the network to say.
struct Fabric {
  enum class Form : std::uint8_t { switched, complete, cycle, line };
  bool is_grid() const { return form == Form::cycle || form == Form::line; }

  Form form = Form::switched;
  double links = 1;          ///< of a device: complete size-1; cycle, line 2 x axes (a pair: 1)
  std::int64_t longest = 2;  ///< members along the longest axis
  double hops = 1;           ///< links between neighbouring members
  double wrap_hops = 1;      ///< links from the last member to the first, for rings
  double span = 1;           ///< links from the first member to the last, along every axis
  double diameter = 1;       ///< links between the members furthest apart
  double ring_load = 1;      ///< load of rings in which every member sends S bytes in all
};
Fabric fabric_of(const Extent& extent, const topology::NetworkDimension& dimension);

/// Counts of the algorithm, or nothing when it does not do this kind or number of members.
std::optional<StepCount> count_steps(graph::CollectiveKind kind, CollectiveAlgorithm algorithm,
                                     std::int64_t members, const Fabric& fabric);

// What the counts of several algorithms share.

/// all_reduce is a reduce_scatter and an all_gather.
constexpr double passes_of(graph::CollectiveKind kind) {
  return kind == graph::CollectiveKind::all_reduce ? 2 : 1;
}
/// Returns messages times links that they pass when a line of n members, all on one side of each
/// cut, talks to the members on the other side: the middle link separates floor(n/2) from
/// ceil(n/2).
double across_the_middle(std::int64_t n);
/// Returns the load when every member sends S/p to every other on the shortest route, all at once.
double exchange_load(std::int64_t members, const Fabric& fabric);
/// Returns ceil(log2 n).
int ceil_log2(std::int64_t n);

}  // namespace orrery::collective
