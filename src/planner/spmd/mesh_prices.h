// SPDX-License-Identifier: Apache-2.0
/// Our own cost (machine_prices.h) on a mesh, of a whole batch and with nothing hidden: a sum.
///
///   compute     kernel of a device's part, forward and twice backward; a product's once for each
///               operand that has a gradient, which inputs, buffers and the masks by which top_1
///               and top_2 gating send rows have not; causal attention's backward as its own kernel
///   step        closed forms of the collective library on the step's groups, forward and backward,
///               of what the other axis leaves of the tensor; an axis along one network dimension
///               has that dimension's latency and bandwidth
///   optimizer   Adam on what a device holds
///   memory      that of memory.h
///
/// Allowed are sound signatures whose slices are even on both axes together, and of attention whole
/// heads. Ignores: groups of an axis that share links, kernels beside collectives; both are
/// simulated.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "planner/spmd/machine_prices.h"
#include "planner/spmd/memory.h"
#include "planner/spmd/mesh.h"
#include "planner/spmd/operator_graph.h"

namespace orrery::spmd {

using MeshSignature = std::array<Signature, kAxes>;

/// MeshTransfers are what a step moves within each of its groups.
struct MeshTransfers {
  std::optional<Transfer> forward{};
  std::optional<Transfer> backward{};
};

class MeshPrices {
 public:
  /// Mistakes: those of MachinePrices::make() for the mesh's devices.
  static Result<MeshPrices> make(const machine::Machine& machine, const Mesh& mesh,
                                 std::int64_t element);

  const Mesh& mesh() const { return mesh_; }
  const machine::Machine& machine() const { return alike_.machine(); }
  graph::DataType type() const { return alike_.type(); }

  bool allows(const OperatorGraph& graph, int node, const MeshSignature& signature) const;
  /// Returns the operator that computes a node's forward pass, and from that all of its backward
  /// pass.
  graph::Operator kernel(const OperatorGraph& graph, int node,
                         const MeshSignature& signature) const;
  static std::vector<graph::Operator> backward(const OperatorGraph& graph, int node,
                                               const graph::Operator& forward);
  /// Returns the time forward and backward; 0 of what does not compute.
  Time compute(const OperatorGraph& graph, int node, const MeshSignature& signature) const;

  /// Requires a step from the form.
  MeshTransfers transfers(const OperatorGraph& graph, int tensor, const MeshForm& form,
                          const MeshStep& step) const;
  /// Returns the time forward and backward.
  Time convert(const OperatorGraph& graph, int tensor, const MeshForm& form,
               const MeshStep& step) const;

  /// Returns the update of a parameter as it was loaded; nothing of other tensors.
  graph::Operator update(const OperatorGraph& graph, int tensor, const MeshForm& form) const;
  Time optimizer(const OperatorGraph& graph, int tensor, const MeshForm& form) const;
  /// Returns the holdings of one tensor in one form.
  Holdings held(const OperatorGraph& graph, int tensor, const MeshForm& form, bool converted) const;

 private:
  MeshPrices(MachinePrices alike, const Mesh& mesh);

  MachinePrices alike_;  ///< of all devices as one axis
  Mesh mesh_;
  std::array<std::vector<collective::Extent>, 3> groups_;  ///< by MeshGroup
};

}  // namespace orrery::spmd
