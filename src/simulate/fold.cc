// SPDX-License-Identifier: Apache-2.0
#include "simulate/fold.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>

#include "collective/group_extents.h"

namespace orrery {
namespace {

/// Rule 1: does the axis split into whole extents of the dimensions?
std::optional<std::string> irregular(const RankLayout& layout, const Machine& machine, Axis axis) {
  const std::int64_t stride = layout.stride(axis);
  const std::int64_t span = stride * layout.size(axis);
  std::int64_t boundary = 1;
  for (const NetworkDimension& dimension : machine.network) {
    boundary *= dimension.size;
    const bool outside = boundary <= stride || boundary >= span;
    if (!outside && (boundary % stride != 0 || span % boundary != 0)) {
      return fmt::format("{} = {} (stride {}) straddles the {} devices of dimension {}",
                         name_of(axis), layout.size(axis), stride, boundary, dimension.name);
    }
    if (outside && boundary <= stride && stride % boundary != 0) {
      return fmt::format("{} has stride {}, no multiple of the {} devices of dimension {}",
                         name_of(axis), stride, boundary, dimension.name);
    }
    if (outside && boundary >= span && boundary % span != 0) {
      return fmt::format("{} spans {} devices, no divisor of the {} of dimension {}", name_of(axis),
                         span, boundary, dimension.name);
    }
  }
  return std::nullopt;
}

/// Rule 2.
std::optional<std::string> asymmetric_dimension(const RankLayout& layout, const Machine& machine,
                                                Axis axis) {
  for (const Extent& extent : group_extents(layout, axis, machine)) {
    const NetworkDimension& dimension = machine.network[static_cast<std::size_t>(extent.dimension)];
    switch (dimension.kind) {
      case DimensionKind::switched:
      case DimensionKind::fully_connected:
        break;
      case DimensionKind::mesh:
        return fmt::format("{} lies on mesh {}, whose ends have one neighbour less", name_of(axis),
                           dimension.name);
      case DimensionKind::ring:
      case DimensionKind::torus:
        if (extent.count != dimension.size) {
          return fmt::format(
              "{} covers {} of the {} devices of ring {}: the wrap crosses others' links",
              name_of(axis), extent.count, dimension.size, dimension.name);
        }
        break;
    }
  }
  return std::nullopt;
}

/// Rule 3.
std::optional<std::string> asymmetric_collective(const BoundWorkload& bound, Axis axis) {
  const bool fixed_tree =
      bound.algorithms[static_cast<std::size_t>(axis)] == CollectiveAlgorithm::double_binary_tree;
  for (const BoundCollective& collective : bound.collectives) {
    for (const CollectivePhase& phase : collective.phases) {
      const bool tree = phase.algorithm == CollectiveAlgorithm::double_binary_tree && fixed_tree;
      if (collective.axis == axis && (tree || phase.kind == CollectiveKind::broadcast)) {
        return fmt::format("{} uses {} {}, whose ranks have different neighbours", name_of(axis),
                           name_of(phase.algorithm), name_of(phase.kind));
      }
    }
  }
  return std::nullopt;
}

std::optional<std::string> reason_not_to_fold(const Workload& workload, const Machine& machine,
                                              const BoundWorkload& bound, Axis axis) {
  for (const RankLayout::Entry& entry : workload.layout.axes) {
    if (entry.size > 1) {
      if (auto reason = irregular(workload.layout, machine, entry.axis)) {
        return reason;
      }
    }
  }
  if (auto reason = asymmetric_dimension(workload.layout, machine, axis)) {
    return reason;
  }
  return asymmetric_collective(bound, axis);
}

}  // namespace

Fold fold_ranks(const Workload& workload, const Machine& machine, const BoundWorkload& bound,
                bool enabled) {
  Fold fold;
  std::vector<Axis> folded;
  if (!enabled) {
    fold.report.reasons.push_back("folding is switched off");
  }
  for (const Axis axis : {Axis::tp, Axis::dp}) {
    if (!enabled || workload.layout.size(axis) == 1) {
      continue;
    }
    if (auto reason = reason_not_to_fold(workload, machine, bound, axis)) {
      fold.report.reasons.push_back(*reason);
    } else {
      folded.push_back(axis);
    }
  }
  for (std::int64_t rank = 0; rank < workload.layout.ranks(); ++rank) {
    const bool first = std::all_of(folded.begin(), folded.end(), [&](Axis axis) {
      return workload.layout.coordinate(rank, axis) == 0;
    });
    if (first) {
      fold.ranks.push_back(rank);
    }
  }
  fold.report.ranks = workload.layout.ranks();
  fold.report.simulated = static_cast<std::int64_t>(fold.ranks.size());
  return fold;
}

}  // namespace orrery
