// SPDX-License-Identifier: Apache-2.0
/// A program on a mesh: for every node, in order, what is converted and then what is computed.
#pragma once

#include <array>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "graph/workload.h"
#include "planner/spmd/mesh.h"
#include "planner/spmd/mesh_prices.h"
#include "planner/spmd/operator_graph.h"

namespace orrery::spmd {

/// A chain of steps from a form that the tensor has. Of the forms on the way none is kept.
struct MeshConversion {
  int tensor = 0;
  MeshForm from{};
  std::vector<MeshStep> steps;
  friend bool operator==(const MeshConversion&, const MeshConversion&) = default;
};

struct MeshComputation {
  std::vector<MeshConversion> conversions;  ///< first
  int node = 0;
  std::array<int, kAxes> signatures{};  ///< by axis: indices into the node's
  friend bool operator==(const MeshComputation&, const MeshComputation&) = default;
};

struct MeshStrategy {
  std::vector<MeshComputation> computations;
  friend bool operator==(const MeshStrategy&, const MeshStrategy&) = default;
};

/// Returns the node's signatures of both axes.
MeshSignature signature_of(const OperatorGraph& graph, const MeshComputation& computation);

struct MeshCost {
  Time total{0};  ///< the sum of the others
  Time compute{0};
  std::array<Time, 3> communication{};  ///< by MeshGroup
  Time optimizer{0};
  Holdings holdings{};  ///< of a device, everything kept
};

/// Finds the cost of a strategy by executing the program. Mistakes, all at once: nodes missing or
/// out of order, signatures that do not exist or are not allowed, inputs that are not there in
/// their forms, chains that are none.
Result<MeshCost> replay(const OperatorGraph& graph, const MeshStrategy& strategy,
                        const MeshPrices& prices);

/// Returns the strategy as a workload for the event loop: kernels and steps one after the other,
/// backward in reverse, then the optimizer. Groups of an axis all run, and share what links they
/// share. Without that it takes what replay() says. Mistakes: those of replay().
Result<graph::Workload> program_of(const OperatorGraph& graph, const MeshStrategy& strategy,
                                   const MeshPrices& prices);

}  // namespace orrery::spmd
