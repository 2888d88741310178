// SPDX-License-Identifier: Apache-2.0
/// Our own cost (machine_prices.h) on a mesh, of a whole batch and with nothing hidden: a sum.
///
///   compute     kernel of a device's part, forward and twice backward; a product's once for each
///               operand that has a gradient, which inputs, buffers and the masks by which top_1
///               and top_2 gating send rows have not; causal attention's backward as its own kernel
///   step        closed forms of the collective library on the step's groups, forward and backward,
///               of what the other axes leave of the tensor; an axis along one network dimension
///               has that dimension's latency and bandwidth
///   optimizer   Adam on what a device holds
///   memory      that of memory.h
///
/// Allowed are sound signatures whose slices are even on all axes together, and of attention whole
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

/// Return the forms of a node's input or output by its signatures.
MeshForm input_form(const MeshSignature& signature, std::size_t k);
MeshForm output_form(const MeshSignature& signature, std::size_t k);

/// MeshTransfers are what a step moves within each of its groups.
struct MeshTransfers {
  std::optional<Transfer> forward{};
  std::optional<Transfer> backward{};
};

/// Weights turn the parts of a program's cost into another sum: what a search under a limit of
/// memory (mesh_limits.h) or beside hidden collectives (mesh_overlap.h) looks for.
struct MeshWeights {
  using ByGroup = std::array<double, kMeshGroups>;
  static constexpr ByGroup alike(double weight) {
    return {weight, weight, weight, weight, weight, weight, weight};
  }

  double compute = 1;  ///< kernels and the optimizer
  ByGroup activations = alike(1);
  ByGroup parameters = alike(1);  ///< gathers of them and sums of their gradients
  double seconds_per_byte = 0;    ///< that a device holds

  static Time of(Time time, double weight) { return weight == 1 ? time : time * weight; }
  Time of(Bytes held) const {
    return from_seconds(seconds_per_byte * static_cast<double>(held.value()));
  }
  friend bool operator==(const MeshWeights&, const MeshWeights&) = default;
  double communication_of(const OperatorGraph& graph, int tensor, MeshGroup group) const {
    const bool loads = graph.producer(tensor).kind == NodeKind::parameter;
    return (loads ? parameters : activations)[static_cast<std::size_t>(group)];
  }
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
  std::array<std::vector<collective::Extent>, kMeshGroups> groups_;  ///< by MeshGroup
};

}  // namespace orrery::spmd
