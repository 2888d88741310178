// SPDX-License-Identifier: Apache-2.0
#include "collective/flat.h"

#include <cassert>

namespace orrery {
namespace {

/// Where an extent stands among the others.
struct Place {
  double count = 1;    ///< c_i
  double inside = 1;   ///< Q_i
  double members = 1;  ///< N
  bool innermost = false;
  bool outermost = false;
};

StepCount ring_part(CollectiveKind kind, const Place& at, const Fabric& fabric) {
  const double passes = kind == CollectiveKind::all_reduce ? 2 : 1;
  const double share = kind == CollectiveKind::broadcast ? 1 : (at.members - 1) / at.members;
  const double edges =
      at.outermost ? at.members / at.inside : (at.count - 1) * at.members / (at.inside * at.count);
  const double steps = edges - (at.innermost ? 1 : 0);
  const double wrap = at.outermost ? fabric.wrap_hops - fabric.hops : 0;
  return {.steps = passes * steps,
          .further_hops = passes * (steps * (fabric.hops - 1) + wrap),
          .load = passes * share * edges / at.members * fabric.ring_load};
}

StepCount tree_part(const Place& at, const Fabric& fabric, double chains) {
  if (at.outermost) {
    const auto members = static_cast<std::int64_t>(at.count);
    StepCount count = count_steps(CollectiveKind::all_reduce,
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
  StepCount count =
      count_steps(CollectiveKind::all_to_all, algorithm, members, fabric).value_or(StepCount{});
  count.load *= at.inside * at.count / at.members;
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

bool runs_flat(CollectiveKind kind, CollectiveAlgorithm algorithm) {
  switch (algorithm) {
    case CollectiveAlgorithm::ring:
      return kind != CollectiveKind::all_to_all;
    case CollectiveAlgorithm::double_binary_tree:
      return kind == CollectiveKind::all_reduce;
    case CollectiveAlgorithm::direct:
    case CollectiveAlgorithm::pairwise:
      return kind == CollectiveKind::all_to_all;
    default:
      return false;
  }
}

const NetworkDimension& dimension_of(const Extent& extent, const Machine& machine) {
  return machine.network[static_cast<std::size_t>(extent.dimension)];
}

}  // namespace

std::int64_t members_of(std::span<const Extent> extents) {
  std::int64_t members = 1;
  for (const Extent& extent : extents) {
    members *= extent.count;
  }
  return members;
}

bool count_flat(CollectiveKind kind, CollectiveAlgorithm algorithm, std::span<const Extent> extents,
                const Machine& machine, FlatCount& flat) {
  assert(extents.size() <= flat.part.size() && "extents_of gives at most kMaxDimensions");
  flat.parts = extents.size();
  flat.lockstep = algorithm == CollectiveAlgorithm::ring;
  if (extents.size() == 1) {
    const Fabric fabric = fabric_of(extents[0], dimension_of(extents[0], machine));
    const auto count = count_steps(kind, algorithm, extents[0].count, fabric);
    flat.part[0] = count.value_or(StepCount{});
    return count.has_value();
  }
  if (!runs_flat(kind, algorithm)) {
    return false;
  }
  Place at{.members = static_cast<double>(members_of(extents))};
  const double chain = at.members / static_cast<double>(extents.back().count);
  for (std::size_t i = 0; i < extents.size(); ++i) {
    at.count = static_cast<double>(extents[i].count);
    at.innermost = i == 0;
    at.outermost = i + 1 == extents.size();
    const Fabric fabric = fabric_of(extents[i], dimension_of(extents[i], machine));
    switch (algorithm) {
      case CollectiveAlgorithm::ring:
        flat.part[i] = ring_part(kind, at, fabric);
        break;
      case CollectiveAlgorithm::double_binary_tree:
        flat.part[i] = tree_part(at, fabric, chain / (at.inside * at.count));
        break;
      default:
        flat.part[i] = exchange_part(algorithm, at, fabric);
    }
    at.inside *= at.count;
  }
  return true;
}

}  // namespace orrery
