// SPDX-License-Identifier: Apache-2.0
#include "collective/flat.h"

#include <algorithm>
#include <cassert>
#include <optional>

namespace orrery::collective {
namespace {

/// Where an extent stands among the others.
struct Place {
  double count = 1;    ///< c_i
  double inside = 1;   ///< Q_i
  double members = 1;  ///< N
  double passing = 1;  ///< X_i
  bool innermost = false;
  bool outermost = false;
  bool closes = false;  ///< the closing edge of a ring crosses this inner dimension as well
};

StepCount ring_part(graph::CollectiveKind kind, const Place& at, const Fabric& fabric) {
  const double passes = kind == graph::CollectiveKind::all_reduce ? 2 : 1;
  const double share = kind == graph::CollectiveKind::broadcast ? 1 : (at.members - 1) / at.members;
  const double blocks = at.members / at.inside;
  const double edges = at.outermost ? blocks : (at.count - 1) * blocks / at.count + at.closes;
  const double steps = edges - (at.innermost ? 1 : 0);
  const double wrap = at.outermost ? fabric.wrap_hops - fabric.hops : 0;
  return {.steps = passes * steps,
          .further_hops = passes * (steps * (fabric.hops - 1) + wrap),
          .load = passes * share * edges / at.members * fabric.ring_load};
}

StepCount tree_part(const Place& at, const Fabric& fabric, double chains) {
  if (at.outermost) {
    const auto members = static_cast<std::int64_t>(at.count);
    StepCount count = count_steps(graph::CollectiveKind::all_reduce,
                                  CollectiveAlgorithm::double_binary_tree, members, fabric)
                          .value_or(StepCount{});
    count.load /= at.inside;
    return count;
  }
  const double steps = 2 * (at.count - 1) * chains;
  return {.steps = steps,
          .further_hops = steps * (fabric.hops - 1),
          .load = 2 * (at.count - 1) / (at.inside * at.count) * fabric.ring_load};
}

/// Direct sends all at once: only the outermost dimension's latency counts.
StepCount exchange_part(CollectiveAlgorithm algorithm, const Place& at, const Fabric& fabric) {
  const auto members = static_cast<std::int64_t>(at.count);
  StepCount count = count_steps(graph::CollectiveKind::all_to_all, algorithm, members, fabric)
                        .value_or(StepCount{});
  count.load *= at.inside * at.passing * at.count / at.members;
  if (algorithm == CollectiveAlgorithm::pairwise) {
    count.steps *= at.inside;
    count.further_hops *= at.inside;
    return count;
  }
  count.steps = at.outermost ? 1 : 0;
  count.further_messages = at.inside * (at.count - 1) - count.steps;
  count.further_hops *= count.steps;
  return count;
}

/// By rails: an exchange inside the innermost dimension brings every message to the member on its
/// receiver's rail; what goes on is bundled, one message per rail peer.
StepCount rail_part(const Place& at, const Fabric& fabric, double rails) {
  StepCount count = exchange_part(CollectiveAlgorithm::direct, at, fabric);
  const auto members = static_cast<std::int64_t>(at.count);
  if (at.innermost) {
    return count_steps(graph::CollectiveKind::all_to_all, CollectiveAlgorithm::direct, members,
                       fabric)
        .value_or(StepCount{});
  }
  count.further_messages = at.inside / rails * (at.count - 1) - count.steps;
  return count;
}

/// A rank and the next differ in the innermost dimension, at its end in the next one too: then the
/// buffer takes the port of the outermost in which they differ. Some rank does so in every one.
StepCount shift_part(const Place& at, const Fabric& fabric) {
  const auto members = static_cast<std::int64_t>(at.count);
  StepCount count =
      count_steps(graph::CollectiveKind::send_recv, CollectiveAlgorithm::direct, members, fabric)
          .value_or(StepCount{});
  count.steps = at.outermost ? 1 : 0;
  count.further_hops *= count.steps;
  return count;
}

/// In the switch inside, every member ends up with the sum of its shard; trees over the outer
/// coordinates add up the shards, and the switch hands the sums to all.
StepCount added_part(const Place& at, const Fabric& fabric) {
  if (at.innermost) {
    const auto members = static_cast<std::int64_t>(at.count);
    return count_steps(graph::CollectiveKind::all_reduce, CollectiveAlgorithm::in_switch, members,
                       fabric)
        .value_or(StepCount{});
  }
  return tree_part(at, fabric, 1);
}

bool runs_flat(graph::CollectiveKind kind, CollectiveAlgorithm algorithm) {
  switch (algorithm) {
    case CollectiveAlgorithm::ring:
      return kind != graph::CollectiveKind::all_to_all && kind != graph::CollectiveKind::send_recv;
    case CollectiveAlgorithm::double_binary_tree:
    case CollectiveAlgorithm::in_switch:
      return kind == graph::CollectiveKind::all_reduce;
    case CollectiveAlgorithm::direct:
      return kind == graph::CollectiveKind::all_to_all || kind == graph::CollectiveKind::send_recv;
    case CollectiveAlgorithm::pairwise:
    case CollectiveAlgorithm::rail:
      return kind == graph::CollectiveKind::all_to_all;
    default:
      return false;
  }
}

/// Members inside each coordinate of the outermost dimension, and those of the innermost one.
struct Inside {
  double outermost = 1;
  double innermost = 1;
};

StepCount part_of(graph::CollectiveKind kind, CollectiveAlgorithm algorithm, const Place& at,
                  const Fabric& fabric, const Inside& inside) {
  switch (algorithm) {
    case CollectiveAlgorithm::ring:
      return ring_part(kind, at, fabric);
    case CollectiveAlgorithm::double_binary_tree:
      return tree_part(at, fabric, inside.outermost / (at.inside * at.count));
    case CollectiveAlgorithm::in_switch:
      return added_part(at, fabric);
    case CollectiveAlgorithm::rail:
      return rail_part(at, fabric, inside.innermost);
    default:
      return kind == graph::CollectiveKind::send_recv ? shift_part(at, fabric)
                                                      : exchange_part(algorithm, at, fabric);
  }
}

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
std::optional<StepCount> count_part(graph::CollectiveKind kind, CollectiveAlgorithm algorithm,
                                    const Place& at, const Fabric& fabric, const Inside& inside) {
  const bool alone = at.innermost && at.outermost;
  return alone ? count_steps(kind, algorithm, static_cast<std::int64_t>(at.count), fabric)
               : part_of(kind, algorithm, at, fabric, inside);
}

}  // namespace

std::int64_t peers_at_once(graph::CollectiveKind kind, CollectiveAlgorithm algorithm,
                           std::span<const Extent> extents, std::size_t i) {
  constexpr std::int64_t kTreeNeighbours = 4;
  const std::int64_t others = extents[i].count - 1;
  const std::int64_t inside = members_of(extents.first(i));
  if (kind == graph::CollectiveKind::send_recv) {
    return 1;
  }
  switch (algorithm) {
    case CollectiveAlgorithm::direct:
    case CollectiveAlgorithm::one_shot:
    case CollectiveAlgorithm::two_shot:
      return inside * others;
    case CollectiveAlgorithm::rail:
      return (i == 0 ? 1 : inside / extents.front().count) * others;
    case CollectiveAlgorithm::double_binary_tree:
      return i + 1 == extents.size() ? std::min(others, kTreeNeighbours) : 1;
    default:
      return 1;
  }
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

bool count_flat(graph::CollectiveKind kind, CollectiveAlgorithm algorithm,
                std::span<const Extent> extents, const machine::Machine& machine, FlatCount& flat) {
  assert(extents.size() <= flat.part.size() && "extents_of gives at most kMaxDimensions");
  flat.parts = extents.size();
  flat.lockstep = algorithm == CollectiveAlgorithm::ring;
  if (extents.size() > 1 && !runs_flat(kind, algorithm)) {
    return false;
  }
  Place at{.members = static_cast<double>(members_of(extents))};
  const Inside inside{.outermost = at.members / static_cast<double>(extents.back().count),
                      .innermost = static_cast<double>(extents.front().count)};
  for (std::size_t i = 0; i < extents.size(); ++i) {
    const topology::NetworkDimension& dimension = dimension_of(extents[i], machine);
    at.count = static_cast<double>(extents[i].count);
    at.innermost = i == 0;
    at.outermost = i + 1 == extents.size();
    look_outside(extents, i, machine, at);
    const auto count = count_part(kind, algorithm, at, fabric_of(extents[i], dimension), inside);
    if (!count) {
      return false;
    }
    flat.part[i] = *count;
    flat.part[i].port = count->load;
    if (dimension.kind == topology::DimensionKind::fully_connected && !dimension.nic.empty()) {
      flat.part[i].port = count_part(kind, algorithm, at, Fabric{}, inside).value_or(*count).load;
    }
    // A shift leaves each block once, everything else from all its members alike.
    flat.senders[i] = kind == graph::CollectiveKind::send_recv ? 1 : at.inside;
    at.inside *= at.count;
  }
  return true;
}

}  // namespace orrery::collective
