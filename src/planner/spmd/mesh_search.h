// SPDX-License-Identifier: Apache-2.0
/// The fastest program on a mesh of two axes, exactly, of all whose cost is a sum (mesh_prices.h).
///
/// Every node gets a pair of signatures; a tensor may be converted to any number of forms, each
/// once, by the cheapest chain of steps from a form that it has (mesh_chains.h). Dynamic
/// programming over cuts: a state is the set of forms of every live tensor. Exact are
///
///   loads      that one node uses are decided there, the cheapest of all;
///   one use    what one node uses is converted where it is made to a form that that node needs, as
///              a sum does not depend on when; forms that no pair of its signatures needs together
///              with those of its other inputs are left out;
///   dominance  of two states at a cut, B goes where
///                  cost(A) + cost of the conversions that A lacks of B's forms <= cost(B) ,
///              as a program from A may begin with them and go on as from B: more forms never cost
///              anything. So a cut keeps few of the (forms)^(live tensors) states that there are;
///   periods    where nodes repeat and a cut has the states of a period before, all dearer by one
///              amount, every further period adds that amount: it is skipped.
///
/// Ignores: overlap, so that no half-batches and stages are there; memory as a limit.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "planner/spmd/compiled_graph.h"
#include "planner/spmd/mesh_strategy.h"

namespace orrery::spmd {

struct MeshOptions {
  Restriction allowed{};     ///< of the signatures of each axis; empty: every one
  bool dominance = true;     ///< false: only equal states are one, for tests
  bool skip_periods = true;  ///< false: every cut is searched, for tests
};

struct MeshCounts {
  std::int64_t states = 0;       ///< kept, of all cuts
  std::int64_t most_states = 0;  ///< of one
  std::int64_t reached = 0;      ///< before dominance
  std::int64_t skipped_periods = 0;
};

struct MeshSolution {
  Time total{0};
  MeshStrategy strategy{};
  MeshCounts counts{};
};

/// Returns the cheapest program; of equal ones that found first, so it is always the same.
/// Mistakes: a node without signatures that are allowed, tensors of more than MeshForm::kDimensions
/// dimensions, more than 16 alive at once, too many states, no program. Requires a graph that
/// verify() accepts.
Result<MeshSolution> search_mesh(const OperatorGraph& graph, const MeshPrices& prices,
                                 const MeshOptions& options = {});

}  // namespace orrery::spmd
