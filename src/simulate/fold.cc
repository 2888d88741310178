// SPDX-License-Identifier: Apache-2.0
#include "simulate/fold.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>

#include "collective/algorithm.h"
#include "collective/cost.h"
#include "simulate/wiring.h"

namespace orrery::simulate {
namespace {

bool holds(const std::vector<graph::Digit>& digits, const graph::Digit& atom) {
  return std::any_of(digits.begin(), digits.end(), [&](const graph::Digit& digit) {
    return digit.stride <= atom.stride && atom.stride * atom.size <= digit.stride * digit.size;
  });
}

/// "tp", or "dp, ep" for a digit that several communicators share.
std::string names_of(const graph::Workload& workload, const graph::Digit& atom) {
  std::string names;
  for (const graph::Group& group : workload.groups) {
    if (group.members.only.empty() && holds(group.members.digits, atom)) {
      names += (names.empty() ? "" : ", ") + group.name;
    }
  }
  return names.empty() ? "ranks" : names;
}

/// Rule 1: does the digit split into whole extents of the dimensions?
std::optional<std::string> irregular(const std::string& name, const graph::Digit& atom,
                                     const machine::Machine& machine) {
  const std::int64_t stride = atom.stride;
  const std::int64_t span = stride * atom.size;
  std::int64_t boundary = 1;
  for (const topology::NetworkDimension& dimension : machine.network) {
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
std::optional<std::string> asymmetric_dimension(const std::string& name, const graph::Digit& atom,
                                                const machine::Machine& machine) {
  for (const collective::Extent& extent : collective::extents_of(atom.stride, atom.size, machine)) {
    const topology::NetworkDimension& dimension =
        machine.network[static_cast<std::size_t>(extent.dimension)];
    switch (dimension.kind) {
      case topology::DimensionKind::switched:
      case topology::DimensionKind::fully_connected:
        break;
      case topology::DimensionKind::mesh:
        return fmt::format("{} lies on mesh {}, whose ends have one neighbour less", name,
                           dimension.name);
      case topology::DimensionKind::ring:
      case topology::DimensionKind::torus:
        if (extent.count * extent.stride != dimension.size) {
          return fmt::format(
              "{} covers {} of the {} devices of ring {}: its ends have other neighbours", name,
              extent.count, dimension.size, dimension.name);
        }
        break;
    }
  }
  return std::nullopt;
}

/// Rule 3.
std::optional<std::string> asymmetric_collective(const graph::Workload& workload,
                                                 const graph::Digit& atom, Binding& bound) {
  for (std::size_t i = 0; i < bound.collectives().size(); ++i) {
    const BoundCollective& collective = bound.collectives()[i];
    const graph::Group& group = workload.group(collective.group);
    if (collective.is_copy || !holds(group.members.digits, atom)) {
      continue;
    }
    const bool fixed = !collective::row_of(bound.algorithms()[collective.group]).alike;
    for (const collective::CollectivePhase& phase : bound.phases(static_cast<int>(i), 0)) {
      const bool differ = fixed && !collective::row_of(phase.algorithm).alike;
      if (differ || phase.kind == graph::CollectiveKind::broadcast) {
        return fmt::format("{} uses {} {}, whose ranks have different neighbours", group.name,
                           name_of(phase.algorithm), name_of(phase.kind));
      }
    }
  }
  return std::nullopt;
}

/// Looks at all that unfolded ranks send, for digits that straddle dimensions.
class Mirrors {
 public:
  Mirrors(const graph::Workload& workload, const machine::Machine& machine, Binding& bound)
      : workload_(workload),
        bound_(bound),
        wiring_(workload, bound, fold_by({}, {}, workload.ranks)),
        links_(machine.network) {}

  /// Returns whether no two ranks share a link.
  bool have_own_links() const {
    for (int d = 0; d < std::ssize(links_.dimensions()); ++d) {
      if (links_.dimensions()[static_cast<std::size_t>(d)].kind !=
              topology::DimensionKind::switched ||
          links_.has_node(d)) {
        return false;
      }
    }
    return true;
  }

  bool map(const graph::Digit& atom) {
    return std::ranges::all_of(wiring_.routes(),
                               [&](const FlowRoute& route) { return maps(route, atom); }) &&
           maps_groups(atom);
  }

 private:
  bool maps(const FlowRoute& route, const graph::Digit& atom) const {
    const std::int64_t from = shifted(atom, route.from);
    const std::int64_t to = shifted(atom, route.to);
    if (to - from != route.to - route.from) {
      return false;
    }
    const topology::Route here = links_.message(route.from, route.to);
    topology::Route there = links_.message(from, to);
    for (topology::LinkUse& use : there.links) {
      use.link = links_.same_of(use.link, shifted(atom, links_.first_owner(use.link), -1));
    }
    return std::ranges::is_permutation(here.links, there.links) && here.latency == there.latency &&
           here.overhead == there.overhead && here.seconds_per_byte == there.seconds_per_byte &&
           here.dimension == there.dimension;
  }

  /// Returns whether communicators by lists are mapped onto such with the same phases; those by
  /// digits lie alike (Binding::phases).
  bool maps_groups(const graph::Digit& atom) {
    for (int i = 0; i < std::ssize(bound_.collectives()); ++i) {
      const BoundCollective& collective = bound_.collective(i);
      const graph::Members& members = workload_.group(collective.group).members;
      const bool by_list = !members.by_digits() || !members.only.empty();
      const auto differs = [&](std::int64_t rank) {
        const std::int64_t image = shifted(atom, rank);
        return members.holds(rank) &&
               (!members.holds(image) ||
                !std::ranges::equal(bound_.phases(i, rank), bound_.phases(i, image), same_phase));
      };
      if (!collective.is_copy && by_list && std::ranges::any_of(wiring_.ranks(), differs)) {
        return false;
      }
    }
    return true;
  }

  /// Returns whether phases on switches are the same; where the members lie on them does not
  /// matter.
  static bool same_phase(const collective::CollectivePhase& a,
                         const collective::CollectivePhase& b) {
    const auto same_port = [](const collective::PortUse& x, const collective::PortUse& y) {
      return x.extent.dimension == y.extent.dimension && x.extent.count == y.extent.count &&
             x.serialisation == y.serialisation && x.through == y.through;
    };
    return a.kind == b.kind && a.algorithm == b.algorithm && a.size == b.size &&
           a.latency == b.latency && a.serialisation == b.serialisation &&
           std::ranges::equal(a.ports, b.ports, same_port);
  }

  const graph::Workload& workload_;
  Binding& bound_;
  Wiring wiring_;
  topology::LinkMap links_;
};

/// Splits a digit that lies on whole extents (rule 1) into its part in every dimension.
std::vector<graph::Digit> parts_of(const graph::Digit& atom, const machine::Machine& machine) {
  std::vector<graph::Digit> parts;
  graph::Digit rest = atom;
  std::int64_t boundary = 1;
  for (const topology::NetworkDimension& dimension : machine.network) {
    boundary *= dimension.size;
    if (boundary > rest.stride && boundary < rest.stride * rest.size) {
      const std::int64_t size = boundary / rest.stride;
      parts.push_back({size, rest.stride});
      rest = {rest.size / size, boundary};
    }
  }
  parts.push_back(rest);
  return parts;
}

/// Digits whose ranks are alike; reasons for the others.
std::vector<graph::Digit> foldable(const graph::Workload& workload, const machine::Machine& machine,
                                   Binding& bound, std::vector<std::string>& reasons) {
  const auto digits = graph::atoms(workload);
  if (!digits) {
    reasons.emplace_back("the degrees of the communicators do not divide one another");
    return {};
  }
  std::vector<graph::Digit> all = *digits;
  const std::vector<graph::Digit>& roles = workload.role_map.digits;
  all.insert(all.end(), roles.begin(), roles.end());
  std::optional<std::string> straddles;  // one irregular digit moves every other coordinate
  for (const graph::Digit& digit : all) {
    straddles = straddles ? straddles : irregular(names_of(workload, digit), digit, machine);
  }
  std::optional<Mirrors> mirrors;
  if (straddles && !mirrors.emplace(workload, machine, bound).have_own_links()) {
    reasons.push_back(std::move(*straddles));
    return {};
  }
  std::vector<graph::Digit> folded;
  const auto fold = [&](const graph::Digit& digit, std::optional<std::string> reason) {
    reason = reason ? reason : asymmetric_collective(workload, digit, bound);
    if (reason) {
      reasons.push_back(std::move(*reason));
    } else {
      folded.push_back(digit);
    }
  };
  for (const graph::Digit& atom : *digits) {
    const std::string name = names_of(workload, atom);
    if (mirrors) {
      fold(atom, mirrors->map(atom) ? std::nullopt : straddles);
    } else if (!asymmetric_dimension(name, atom, machine)) {
      fold(atom, std::nullopt);
    } else {
      for (const graph::Digit& part : parts_of(atom, machine)) {
        fold(part, asymmetric_dimension(name, part, machine));
      }
    }
  }
  return folded;
}

}  // namespace

Fold fold_by(std::vector<graph::Digit> folded, std::vector<std::string> reasons,
             std::int64_t ranks) {
  Fold fold;
  fold.folded = std::move(folded);
  fold.report.reasons = std::move(reasons);
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    if (fold.representative(rank) == rank) {
      fold.ranks.push_back(rank);
    }
  }
  fold.report.ranks = ranks;
  fold.report.simulated = static_cast<std::int64_t>(fold.ranks.size());
  return fold;
}

Fold fold_ranks(const graph::Workload& workload, const machine::Machine& machine, Binding& bound,
                const std::optional<std::string>& refusal) {
  if (refusal) {
    return fold_by({}, {*refusal}, workload.ranks);
  }
  std::vector<std::string> reasons;
  std::vector<graph::Digit> folded = foldable(workload, machine, bound, reasons);
  return fold_by(std::move(folded), std::move(reasons), workload.ranks);
}

}  // namespace orrery::simulate
