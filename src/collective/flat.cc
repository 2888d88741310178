// SPDX-License-Identifier: Apache-2.0
#include "collective/flat.h"

#include <algorithm>
#include <cassert>
#include <optional>

namespace orrery::collective {
namespace {

bool is_switch(const Extent& extent, const machine::Machine& machine) {
  return dimension_of(extent, machine).kind == topology::DimensionKind::switched;
}

/// Sums up what lies outside a dimension: X_i, and whether closing edges cross it.
void look_outside(std::span<const Extent> extents, std::size_t i, const machine::Machine& machine,
                  Place& at) {
  double between = 1;
  at.passing = 1;
  at.closes = i + 1 < extents.size() && !is_switch(extents.back(), machine);
  for (const Extent& outer : extents.subspan(i + 1)) {
    const auto count = static_cast<double>(outer.count);
    at.passing += is_switch(outer, machine) ? 0 : (count - 1) * between;
    at.closes = at.closes && outer.count % 2 == 1;
    between *= count;
  }
}

/// Returns the steps of a dimension on its own or among others.
std::optional<StepCount> count_part(graph::CollectiveKind kind, const AlgorithmRow& row,
                                    const Place& at, const Fabric& fabric) {
  if (at.innermost && at.outermost) {
    return row.counts ? row.counts(kind, static_cast<std::int64_t>(at.count), fabric)
                      : std::nullopt;
  }
  return row.part ? row.part(kind, at, fabric) : std::nullopt;
}

}  // namespace

std::int64_t peers_at_once(graph::CollectiveKind kind, const AlgorithmRow& row,
                           std::span<const Extent> extents, std::size_t i) {
  if (kind == graph::CollectiveKind::send_recv) {
    return 1;
  }
  if (row.at_once) {
    return members_of(extents.first(i)) * (extents[i].count - 1);
  }
  return row.peers ? row.peers(extents, i) : 1;
}

bool peers_count(std::span<const Extent> extents, const machine::Machine& machine) {
  return std::any_of(extents.begin(), extents.end(), [&](const Extent& extent) {
    return !dimension_of(extent, machine).bandwidth_by_peers.empty();
  });
}

std::int64_t members_of(std::span<const Extent> extents) {
  std::int64_t members = 1;
  for (const Extent& extent : extents) {
    members *= extent.count;
  }
  return members;
}

bool count_flat(graph::CollectiveKind kind, const AlgorithmRow& row,
                std::span<const Extent> extents, const machine::Machine& machine, FlatCount& flat) {
  assert(extents.size() <= flat.part.size() && "extents_of gives at most kMaxDimensions");
  flat.parts = extents.size();
  flat.lockstep = row.lockstep;
  Place at{.members = static_cast<double>(members_of(extents)),
           .first = static_cast<double>(extents.front().count)};
  at.below = at.members / static_cast<double>(extents.back().count);
  for (std::size_t i = 0; i < extents.size(); ++i) {
    const topology::NetworkDimension& dimension = dimension_of(extents[i], machine);
    at.count = static_cast<double>(extents[i].count);
    at.innermost = i == 0;
    at.outermost = i + 1 == extents.size();
    look_outside(extents, i, machine, at);
    const auto count = count_part(kind, row, at, fabric_of(extents[i], dimension));
    if (!count) {
      return false;
    }
    flat.part[i] = *count;
    flat.part[i].port = count->load;
    if (dimension.kind == topology::DimensionKind::fully_connected && !dimension.nic.empty()) {
      flat.part[i].port = count_part(kind, row, at, Fabric{}).value_or(*count).load;
    }
    // A shift leaves each block once, everything else from all its members alike.
    flat.senders[i] = kind == graph::CollectiveKind::send_recv ? 1 : at.inside;
    at.inside *= at.count;
  }
  return true;
}

}  // namespace orrery::collective
