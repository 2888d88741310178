// SPDX-License-Identifier: Apache-2.0
/// Says which ranks need to be simulated.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "graph/workload.h"
#include "machine/machine.h"
#include "machine/topology/link_map.h"
#include "simulate/bind.h"
#include "simulate/timeline.h"

namespace orrery::simulate {

/// Links of which one stands for all that the folded digits map onto one another. A message of a
/// simulated rank passes it at bandwidth / `multiplicity`: so many of its mirrors pass it at once.
struct LinkMirrors {
  std::vector<topology::LinkId> stands_for;  ///< by link; empty: every link for itself
  std::vector<double> multiplicity;
  /// Collectives (Binding) whose members do not send alike: all their messages go, on their own
  /// links (message_fold.h).
  std::set<int> apart;

  void mirror(std::vector<topology::Hop>& hops) const {
    if (stands_for.empty()) {
      return;
    }
    for (topology::Hop& hop : hops) {
      hop.bandwidth = Bandwidth(hop.bandwidth.value() / multiplicity[hop.link]);
      hop.link = stands_for[hop.link];
    }
  }
};

/// A digit of the rank number (atoms() of the workload; roles run different programs) folds to 0
/// when shifting it maps the machine and all messages onto themselves:
///   1. every digit lies on whole extents of dimensions (strides and sizes divide one another), so
///      the shift keeps every other coordinate; or, where one straddles dimensions, no two ranks
///      share a link (switches without links of nodes) and the shift maps the route of every
///      message onto that of its image, which is looked up message by message;
///   2. each dimension it touches is a switch or fully connected (any permutation maps links onto
///      links), or a ring of which it is the outermost part: shifting it rotates the whole ring,
///      and groups that are lines in the ring onto each other. Never a mesh or an inner part of a
///      ring, whose ends have other neighbours than its middle;
///   3. the collectives of every group that holds it treat all members alike: no broadcast, and no
///      double_binary_tree that the plan asks for. Where `auto` takes a tree, as NCCL does for
///      large groups, only its time is taken: the network model charges every member the busiest
///      one's load, so the ranks stay alike.
/// Each part of a digit over several dimensions that lies in one of them may fold alone. What does
/// not fold is simulated in all its values, and `reasons` says why.
struct Fold {
  std::vector<std::int64_t> ranks;  ///< to simulate, ascending
  std::vector<graph::Digit> folded;
  FoldReport report;
  LinkMirrors mirrors;  ///< of message_fold.h

  /// Returns the simulated rank that stands for `rank`.
  std::int64_t representative(std::int64_t rank) const {
    for (const graph::Digit& digit : folded) {
      rank -= digit.of(rank) * digit.stride;
    }
    return rank;
  }
};

/// Returns the rank whose digit is `by` above that of `rank`, around its size.
inline std::int64_t shifted(const graph::Digit& digit, std::int64_t rank, std::int64_t by = 1) {
  const std::int64_t value = digit.of(rank);
  return rank + ((value + by + digit.size) % digit.size - value) * digit.stride;
}

/// Returns the fold that simulates the ranks whose folded digits are all 0.
Fold fold_by(std::vector<graph::Digit> folded, std::vector<std::string> reasons,
             std::int64_t ranks);

/// Folds ranks. `bound`: all templates. `refusal`: why nothing may fold, if so.
Fold fold_ranks(const graph::Workload& workload, const machine::Machine& machine, Binding& bound,
                const std::optional<std::string>& refusal);

}  // namespace orrery::simulate
