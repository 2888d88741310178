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
#include "planner/spmd/stage.h"

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
  std::array<int, kAxes> signatures{};  ///< by axis: indices into the node's; 0 on one of 1 device
  friend bool operator==(const MeshComputation&, const MeshComputation&) = default;
};

struct MeshStrategy {
  std::vector<MeshComputation> computations;
  friend bool operator==(const MeshStrategy&, const MeshStrategy&) = default;
};

/// Returns the node's signatures of all axes; on one of 1 device every form is full.
MeshSignature signature_of(const OperatorGraph& graph, const MeshComputation& computation,
                           const Mesh& mesh);

struct MeshCost {
  Time total{0};  ///< the sum of the others
  Time compute{0};
  std::array<Time, kMeshGroups> communication{};  ///< by MeshGroup
  std::array<Time, kMeshGroups> of_parameters{};  ///< the part of it that gathers them or sums up
  Time optimizer{0};
  Holdings holdings{};  ///< of a device, everything kept

  /// Returns the sum by these weights, without the memory.
  Time weighted(const MeshWeights& weights) const;
};

/// Finds the cost of a strategy by executing the program. Mistakes, all at once: nodes missing or
/// out of order, signatures that do not exist or are not allowed, inputs that are not there in
/// their forms, chains that are none.
Result<MeshCost> replay(const OperatorGraph& graph, const MeshStrategy& strategy,
                        const MeshPrices& prices);

/// Returns the strategy as a workload for the event loop: kernels and steps, backward in reverse,
/// then the optimizer. Groups of an axis all run, and share what links they share.
///
///   none      one after the other: without shared links it takes what replay() says
///   both      each when what it reads is there: kernels in their order on one stream, the steps of
///             each group on a stream for activations and one for parameters and their gradients,
///             in their order; so parameters are gathered ahead, and gradients summed beside the
///             kernels of earlier nodes
///   forward   the same in the forward pass only
///
/// Mistakes: those of replay().
Result<graph::Workload> program_of(const OperatorGraph& graph, const MeshStrategy& strategy,
                                   const MeshPrices& prices, Overlap overlap = Overlap::none);

}  // namespace orrery::spmd
