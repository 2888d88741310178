// SPDX-License-Identifier: Apache-2.0
/// Our own cost: what the published one (prices.h) leaves out or counts twice, on a machine file.
///
///   compute     of a half-batch: the kernel of its share (kernel_shape.h, machine/compute)
///               flops  the node's own, or linear, einsum, bmm, matmul, conv2d 2 M N K ; attention
///                      4 L S n d and projections 8 L n d^2 ; gating 2 b s d E ; others none
///               bytes  the node's own but of products, or inputs and outputs in their forms;
///                      activations and inputs half
///   collective  closed forms of the collective library over all devices by group and bytes, which
///               of an all-to-all are a device's slice
///   activations  half the bytes for each half; what an input becomes has no gradient
///   parameters   converted and their gradients summed once, not for each half: on half 1, whose
///                gradient comes last
///   buffers      no gradient
///   slices       full -> gather_D: all-gather backward (form.h)
///   flush        3: the last stage's backward of half 2 counts (stage.h)
///
///   optimizer    Adam on what a device holds: 28 bytes of memory traffic a parameter of 4 bytes;
///                of 2 bytes, beside a copy in 4, 30
///
/// Rates are those of the first of tf32, fp32, bf16 and fp16 that the device has; of elements of 2
/// bytes of bf16 and fp16. Signatures that
/// are not sound, or whose slices would be uneven, are not allowed. Ignores:
/// that kernels beside collectives are slower; stragglers.
#pragma once

#include <optional>
#include <vector>

#include "collective/cost.h"
#include "graph/workload.h"
#include "machine/machine.h"
#include "planner/spmd/kernel_shape.h"
#include "planner/spmd/prices.h"

namespace orrery::spmd {

/// A collective of all devices, its buffer as graph::Node counts it.
struct Transfer {
  graph::CollectiveKind kind = graph::CollectiveKind::all_reduce;
  Bytes buffer{0};
};

/// Transfers are what a conversion moves: for each half-batch, or once for both.
struct Transfers {
  std::optional<Transfer> forward{};
  std::optional<Transfer> backward{};
  bool once = false;
};

class MachinePrices : public Prices {
 public:
  /// Mistakes: a machine that does not have exactly so many devices, or no rate for matrices.
  /// `element`: OperatorGraph::element.
  static Result<MachinePrices> make(const machine::Machine& machine, std::int64_t devices,
                                    Overlap overlap, std::int64_t element = 4);

  StageRule rule() const override { return {overlap_, 3}; }
  Time compute(const OperatorGraph& graph, int node, const Signature& signature) const override;
  StageWork convert(const OperatorGraph& graph, int tensor, Form from, Form to) const override;
  Operation backward(const Conversion& conversion) const override { return conversion.gradient; }
  bool allows(const OperatorGraph& graph, int node, const Signature& signature) const override;
  /// Returns the optimizer's time, of a parameter as it was made.
  Time penalty(const OperatorGraph& graph, int tensor, Form form, bool converted) const override;

  std::int64_t devices() const { return devices_; }
  const machine::Machine& machine() const { return machine_; }  ///< of so many devices
  graph::DataType type() const { return type_; }
  /// Returns the operator that computes a node's forward pass of a half-batch.
  graph::Operator kernel(const OperatorGraph& graph, int node, const Signature& signature) const;
  /// Returns a parameter's share of the optimizer's one kernel.
  graph::Operator update(const OperatorGraph& graph, int tensor, Form form) const;
  /// Requires a legal conversion.
  Transfers transfers(const OperatorGraph& graph, int tensor, Form from, Form to) const;
  /// Returns the operator that computes one device's part by every cut, of one of `batches` parts
  /// of the batch.
  static graph::Operator kernel_of(const OperatorGraph& graph, int node,
                                   const std::vector<Cut>& cuts, std::int64_t batches,
                                   graph::DataType type);
  /// Finds the collective of a group that converts a tensor of which the group has so much. Returns
  /// the FLOPs of the forward pass, whole batch.
  static std::optional<Transfer> transfer_of(Operation kind, Bytes whole, std::int64_t members);
  static Flops flops_of(const OperatorGraph& graph, int node);

 private:
  MachinePrices(machine::Machine machine, std::int64_t devices, Overlap overlap,
                graph::DataType type);
  Time time_of(const std::optional<Transfer>& transfer) const;
  bool divides(const OperatorGraph& graph, int tensor, Form form) const;

  machine::Machine machine_;
  std::int64_t devices_;
  Overlap overlap_;
  graph::DataType type_;
  std::vector<collective::Extent> group_;  ///< of all devices
};

}  // namespace orrery::spmd
