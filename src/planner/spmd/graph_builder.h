// SPDX-License-Identifier: Apache-2.0
/// Writes an operator graph node by node; signatures come from the table (signatures.h).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "planner/spmd/operator_graph.h"
#include "planner/spmd/signatures.h"

namespace orrery::spmd {

/// A graph that is built from a name has these bounds.
inline constexpr std::int64_t kMostDevices = 65536;
inline constexpr std::int64_t kMostLayers = 4096;

/// Elements of a shape.
double elements(const Shape& shape);

/// Work is what an operator does, beside its tensors.
struct Work {
  std::string op;
  double flops = 0;
  int axis = -1;
  int other_axis = -1;
};

class GraphBuilder {
 public:
  explicit GraphBuilder(std::int64_t bytes_per_element) { graph_.element = bytes_per_element; }

  OperatorGraph& graph() { return graph_; }
  const Shape& shape(int tensor) const {
    return graph_.tensors[static_cast<std::size_t>(tensor)].shape;
  }
  /// Sets what stands before the names of parameters from now on.
  void set_prefix(std::string prefix) { prefix_ = std::move(prefix); }

  int load(NodeKind kind, std::string name, const Shape& extents,
           std::vector<Signature> signatures);
  int input(const std::string& name, const Shape& extents);
  int parameter(const std::string& name, const Shape& extents);
  int buffer(const std::string& name, const Shape& extents);
  /// Returns "linear", "linear_1", "linear_2".
  std::string numbered(const std::string& name);
  std::vector<int> apply(const Work& work, const std::vector<int>& inputs,
                         const std::vector<Shape>& outputs, const std::string& name);
  int apply(const Work& work, const std::vector<int>& inputs, const Shape& output);
  /// Adds an operator whose output is shaped as the first input.
  int elementwise(const std::string& op, const std::vector<int>& inputs, double flops_each = 1);
  int transpose(int x, int axis, int other);
  /// Appends a node and the tensors that it makes, of which it returns the numbers.
  std::vector<int> add(Node node, const std::vector<Shape>& outputs);
  /// Adds the last node: the loss is summands.
  void output(int loss);

 private:
  int tensor(Shape shape);

  std::string prefix_;
  std::map<std::string, int> used_;
  OperatorGraph graph_;
};

}  // namespace orrery::spmd
