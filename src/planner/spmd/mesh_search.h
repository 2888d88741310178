// SPDX-License-Identifier: Apache-2.0
/// The fastest program on a mesh, of all whose cost is a sum (mesh_prices.h): exactly, or with a
/// bound.
///
/// Every node gets a signature for each axis; a tensor may be converted to any number of forms,
/// each once, by the cheapest chain of steps from a form that it has (mesh_chains.h). Dynamic
/// programming over cuts: a state is the set of forms of every live tensor. Exact are
///
///   loads      that one node uses are decided there, the cheapest of all;
///   one use    what one node uses is converted where it is made to a form that that node needs, as
///              a sum does not depend on when; forms that none of its signatures need together with
///              those of its other inputs are left out;
///   dominance  of two states at a cut, B goes where
///                  cost(A) + cost of the conversions that A lacks of B's forms <= cost(B) ,
///              as a program from A may begin with them and go on as from B: more forms never cost
///              anything. So a cut keeps few of the (forms)^(live tensors) states that there are;
///   periods    where nodes repeat and a cut has the states of a period before, all dearer by one
///              amount, every further period adds that amount: it is skipped.
///
/// Where a cut has more states than `most_states` after all that, only the cheapest stay, so the
/// answer may not be the optimum. A second search then finds a bound: there the others become one
/// state for each set of forms of what is used once, with all their forms and the least of their
/// costs, which can stand for each of them (a relaxed decision diagram: Bergman et al., INFORMS
/// Journal on Computing 28, 2016). Without such a cut the total is its own bound.
///
/// Ignores: overlap, so that no half-batches and stages are there (mesh_overlap.h); memory as a
/// limit (mesh_limits.h).
#pragma once

#include <cstdint>

#include "base/result.h"
#include "planner/spmd/compiled_graph.h"
#include "planner/spmd/mesh_strategy.h"

namespace orrery::spmd {

struct MeshOptions {
  Restriction allowed{};         ///< of the signatures of each axis; empty: every one
  MeshWeights weights{};         ///< of the parts of the sum
  std::int64_t most_states = 0;  ///< kept at a cut; 0: most_states_on()
  bool with_bound = true;        ///< false: of dropped states none is found
  bool dominance = true;         ///< false: only equal states are one, for tests
  bool skip_periods = true;      ///< false: every cut is searched, for tests
};

/// Returns how many states a search keeps at a cut unless it is told.
constexpr std::int64_t most_states_on(const Mesh& mesh) {
  const bool three = mesh[0] > 1 && mesh[1] > 1 && mesh[2] > 1;
  return three ? 1'000 : 50'000;
}

struct MeshCounts {
  std::int64_t states = 0;       ///< kept, of all cuts
  std::int64_t most_states = 0;  ///< of one
  std::int64_t reached = 0;      ///< before dominance
  std::int64_t skipped_periods = 0;
  std::int64_t dropped = 0;  ///< states beyond `most_states`, dominated or not
};

struct MeshSolution {
  Time total{0};  ///< weighted
  Time bound{0};  ///< no program's is less, but for a picosecond a part where weights are not whole
  MeshStrategy strategy{};
  MeshCounts counts{};
};

/// Returns the cheapest program that is found; of equal ones that found first, so it is always the
/// same. Mistakes: a node without signatures that are allowed, tensors of more than
/// MeshForm::kDimensions dimensions, more than 16 alive at once, no program. Requires a graph that
/// verify() accepts.
Result<MeshSolution> search_mesh(const OperatorGraph& graph, const MeshPrices& prices,
                                 const MeshOptions& options = {});

}  // namespace orrery::spmd
