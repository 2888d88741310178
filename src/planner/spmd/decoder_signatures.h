// SPDX-License-Identifier: Apache-2.0
/// Says in which forms devices can run an operator of the zoo, from the dimensions of its tensors.
///
/// Cut by a dimension, an operator takes slices of the tensors that have it and whole ones of those
/// that have not, and gives slices or, without it, summands:
///
///   any operator   batch; sequence, but for attention, convolution, scan and experts' routing
///   products       rows of the weight (columns of the result); without bias its columns (those of
///                  the input) and, of one input, summands of this
///   experts        also experts, and room for their rows
///   others         columns, but of a norm's row and of the loss; lookups the vocabulary
///   sums of branches, and of experts' rows    summands of what they add up
///
/// The first is batch, the last all full. A product's columns that several tensors share stand by
/// head or group, gate beside up, so that slices have a part of each.
#pragma once

#include <vector>

#include "graph/model_graph.h"
#include "planner/spmd/operator_graph.h"
#include "workload/zoo/model.h"

namespace orrery::spmd {

/// Columns that tensor parallelism divides have this one name here.
inline constexpr graph::Dim kDivided = graph::Dim::inner;

/// An Operand is what a node takes or gives.
struct Operand {
  int tensor = -1;
  std::vector<std::int64_t> shape;
  /// Names of its dimensions. Weights of products, which have none, are (out, in), of experts
  /// (experts, in, out).
  std::vector<graph::Dim> dims;
  bool parameter = false;
};

std::vector<Signature> signatures_of(const zoo::ModelOperator& op,
                                     const std::vector<Operand>& inputs,
                                     const std::vector<Operand>& outputs);

}  // namespace orrery::spmd
