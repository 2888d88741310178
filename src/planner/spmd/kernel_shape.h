// SPDX-License-Identifier: Apache-2.0
/// Says which kernel computes an operator's part on one device, and its extents: a share of the
/// node's own (operator_graph.h), or by the name of the operator
///
///   linear, conv2d, bmm, matmul, einsum     gemm, batched over experts or samples
///   layer_norm                              norm
///   softmax, log_softmax                    softmax
///   embedding, nll_loss                     embedding, loss
///   attention (with projections), gating    opaque
///   others                                  elementwise
#pragma once

#include <cstdint>
#include <vector>

#include "graph/operator.h"
#include "planner/spmd/operator_graph.h"

namespace orrery::spmd {

struct KernelShape {
  graph::OperatorKind kind = graph::OperatorKind::elementwise;
  graph::GemmShape gemm{};
};

/// Says how one axis of devices shares an operator.
struct Cut {
  const Signature* signature = nullptr;
  std::int64_t devices = 1;
};

constexpr bool is_product(graph::OperatorKind kind) {
  return kind == graph::OperatorKind::gemm || kind == graph::OperatorKind::grouped_gemm;
}

/// Returns the shape of one device's part by every cut, of one of `batches` equal parts of the
/// batch. Extents are rounded down, but at least 1. Requires a node that computes.
KernelShape kernel_shape(const OperatorGraph& graph, const Node& node, const std::vector<Cut>& cuts,
                         std::int64_t batches);

}  // namespace orrery::spmd
