// SPDX-License-Identifier: Apache-2.0
#include "simulate/fold.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>

#include "collective/cost.h"

namespace orrery {
namespace {

/// "tp", or "dp, ep" for a digit that several communicators share.
std::string names_of(const RankLayout& layout, const Digit& atom) {
  std::string names;
  for (const auto& axis : kNames<Axis>) {
    for (const Digit& digit : layout.digits(axis.value)) {
      const bool holds = digit.stride <= atom.stride &&
                         atom.stride * atom.size <= digit.stride * digit.size &&
                         axis.value != Axis::embedding;
      if (holds) {
        names += (names.empty() ? "" : ", ") + std::string(axis.name);
      }
    }
  }
  return names;
}

bool holds(const RankLayout& layout, Axis axis, const Digit& atom) {
  const std::vector<Digit> digits = layout.digits(axis);
  return std::any_of(digits.begin(), digits.end(), [&](const Digit& digit) {
    return digit.stride <= atom.stride && atom.stride * atom.size <= digit.stride * digit.size;
  });
}

/// Rule 1: does the digit split into whole extents of the dimensions?
std::optional<std::string> irregular(const std::string& name, const Digit& atom,
                                     const Machine& machine) {
  const std::int64_t stride = atom.stride;
  const std::int64_t span = stride * atom.size;
  std::int64_t boundary = 1;
  for (const NetworkDimension& dimension : machine.network) {
    boundary *= dimension.size;
    const bool outside = boundary <= stride || boundary >= span;
    if (!outside && (boundary % stride != 0 || span % boundary != 0)) {
      return fmt::format("{} = {} (stride {}) straddles the {} devices of dimension {}", name,
                         atom.size, stride, boundary, dimension.name);
    }
    if (outside && boundary <= stride && stride % boundary != 0) {
      return fmt::format("{} has stride {}, no multiple of the {} devices of dimension {}", name,
                         stride, boundary, dimension.name);
    }
    if (outside && boundary >= span && boundary % span != 0) {
      return fmt::format("{} spans {} devices, no divisor of the {} of dimension {}", name, span,
                         boundary, dimension.name);
    }
  }
  return std::nullopt;
}

/// Rule 2.
std::optional<std::string> asymmetric_dimension(const std::string& name, const Digit& atom,
                                                const Machine& machine) {
  for (const Extent& extent : extents_of(atom.stride, atom.size, machine)) {
    const NetworkDimension& dimension = machine.network[static_cast<std::size_t>(extent.dimension)];
    switch (dimension.kind) {
      case DimensionKind::switched:
      case DimensionKind::fully_connected:
        break;
      case DimensionKind::mesh:
        return fmt::format("{} lies on mesh {}, whose ends have one neighbour less", name,
                           dimension.name);
      case DimensionKind::ring:
      case DimensionKind::torus:
        if (extent.count != dimension.size) {
          return fmt::format(
              "{} covers {} of the {} devices of ring {}: the wrap crosses others' links", name,
              extent.count, dimension.size, dimension.name);
        }
        break;
    }
  }
  return std::nullopt;
}

/// Rule 3.
std::optional<std::string> asymmetric_collective(const RankLayout& layout, const Digit& atom,
                                                 const BoundWorkload& bound) {
  for (const BoundCollective& collective : bound.collectives) {
    if (!holds(layout, collective.axis, atom)) {
      continue;
    }
    const bool fixed_tree = bound.algorithms[static_cast<std::size_t>(collective.axis)] ==
                            CollectiveAlgorithm::double_binary_tree;
    for (const CollectivePhase& phase : collective.phases) {
      const bool tree = phase.algorithm == CollectiveAlgorithm::double_binary_tree && fixed_tree;
      if (tree || phase.kind == CollectiveKind::broadcast) {
        return fmt::format("{} uses {} {}, whose ranks have different neighbours",
                           name_of(collective.axis), name_of(phase.algorithm), name_of(phase.kind));
      }
    }
  }
  return std::nullopt;
}

/// Digits whose ranks are alike; reasons for the others.
std::vector<Digit> foldable(const Workload& workload, const Machine& machine,
                            const BoundWorkload& bound, std::vector<std::string>& reasons) {
  const RankLayout& layout = workload.layout;
  const auto atoms = layout.atoms();
  if (!atoms) {
    reasons.emplace_back("the degrees of the communicators do not divide one another");
    return {};
  }
  std::vector<Digit> all = *atoms;
  const std::vector<Digit> stages = layout.digits(Axis::pp);
  all.insert(all.end(), stages.begin(), stages.end());
  for (const Digit& digit : all) {  // one irregular digit moves every other coordinate
    if (auto reason = irregular(names_of(layout, digit), digit, machine)) {
      reasons.push_back(std::move(*reason));
      return {};
    }
  }
  std::vector<Digit> folded;
  for (const Digit& atom : *atoms) {
    auto reason = asymmetric_dimension(names_of(layout, atom), atom, machine);
    if (!reason) {
      reason = asymmetric_collective(layout, atom, bound);
    }
    if (reason) {
      reasons.push_back(std::move(*reason));
    } else {
      folded.push_back(atom);
    }
  }
  return folded;
}

}  // namespace

Fold fold_ranks(const Workload& workload, const Machine& machine, const BoundWorkload& bound,
                bool enabled) {
  Fold fold;
  std::vector<Digit> folded;
  if (enabled) {
    folded = foldable(workload, machine, bound, fold.report.reasons);
  } else {
    fold.report.reasons.push_back("folding is switched off");
  }
  for (std::int64_t rank = 0; rank < workload.layout.ranks(); ++rank) {
    const bool first = std::all_of(folded.begin(), folded.end(), [&](const Digit& digit) {
      return rank / digit.stride % digit.size == 0;
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
