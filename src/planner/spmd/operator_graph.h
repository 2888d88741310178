// SPDX-License-Identifier: Apache-2.0
/// The operators of a model's forward pass in execution order, each with the forms in which devices
/// can run it. Whole tensors, global batch: how they are spread is what the search decides.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/names.h"
#include "base/result.h"
#include "base/units.h"
#include "graph/operator.h"
#include "planner/spmd/form.h"

namespace orrery::spmd {

enum class NodeKind : std::uint8_t { input, parameter, buffer, op, output };
constexpr auto named_values(NodeKind) {
  return std::to_array<Named<NodeKind>>({
      {NodeKind::input, "input", "a batch of samples or labels"},
      {NodeKind::parameter, "parameter", "what is trained"},
      {NodeKind::buffer, "buffer", "a constant: a mask, positions"},
      {NodeKind::op, "operator", "what computes"},
      {NodeKind::output, "output", "the loss"},
  });
}

struct Tensor {
  int producer = 0;                 ///< node
  std::vector<std::int64_t> shape;  ///< whole; empty: a scalar
  Bytes bytes{0};                   ///< whole
  friend bool operator==(const Tensor&, const Tensor&) = default;
};

/// A NodeKernel runs a node of the zoo's operators, for the whole batch.
struct NodeKernel {
  graph::OperatorKind kind = graph::OperatorKind::elementwise;
  graph::GemmShape gemm{};
  Flops flops{0};
  Bytes bytes{0};
  int kernels = 1;
  std::int64_t parts = 0;  ///< heads or groups that slices of its columns hold whole; 0: none
  friend bool operator==(const NodeKernel&, const NodeKernel&) = default;
};

struct Node {
  NodeKind kind = NodeKind::op;
  std::string op{};            ///< "linear", "einsum bsd,bsec->becd"; empty unless an operator
  std::string name{};          ///< unique
  Flops flops{0};              ///< forward, global batch
  std::vector<int> inputs{};   ///< tensors; one used twice is there once
  std::vector<int> outputs{};  ///< tensors
  std::vector<Signature> signatures{};
  std::optional<NodeKernel> kernel{};  ///< nothing: it follows from `op` (kernel_shape.h)
  bool experts = false;                ///< moves rows of experts or computes them, or their weights

  bool is_load() const { return kind == NodeKind::parameter || kind == NodeKind::buffer; }
  friend bool operator==(const Node&, const Node&) = default;
};

struct OperatorGraph {
  std::string model;         ///< name, for reports
  std::int64_t devices = 0;  ///< for which it was made; 0: not known
  std::int64_t layers = 0;   ///< 0: not known
  std::int64_t element = 4;  ///< bytes of one of a tensor
  std::vector<Tensor> tensors;
  std::vector<Node> nodes;  ///< in execution order

  const Node& node(int i) const { return nodes[static_cast<std::size_t>(i)]; }
  const Tensor& tensor(int i) const { return tensors[static_cast<std::size_t>(i)]; }
  /// Returns the node that makes the tensor.
  const Node& producer(int i) const { return node(tensor(i).producer); }
  /// Returns the place among a node's inputs of the parameter that is a matrix, or one for each
  /// expert; -1: none.
  int weight_of(const Node& node) const;
  Flops forward_flops() const;
  /// Elements of all parameters.
  std::int64_t parameters() const;
  friend bool operator==(const OperatorGraph&, const OperatorGraph&) = default;
};

/// Checks that the tables agree: tensors are made before they are used and by the node that says
/// so, inputs, parameters and buffers have one output and no inputs, every node has a signature,
/// and every signature names forms for its inputs and outputs, of dimensions that they have.
/// Mistakes: each of these, naming the node.
Result<void> verify(const OperatorGraph& graph);

/// Reads "annotated-graph/1": an object of `tensors` ({id, producer, shape, bytes}) and `nodes`
/// ({id, kind, op, name, flops, inputs, outputs, signatures: [[input forms], [output forms]],
/// kernel, experts}), ids from 0 in order; other fields of the header are described in
/// docs/models/spmd.md. The graph is verified.
Result<OperatorGraph> load_graph(const std::string& file);

}  // namespace orrery::spmd
