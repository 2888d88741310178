// SPDX-License-Identifier: Apache-2.0
/// Which kernel computes an operator's part on one device, and its extents.
///
///   linear, conv2d, bmm, matmul, einsum     gemm, batched over experts or samples
///   causal_attention, local_attention       attention, where the graph says how many heads
///   layer_norm, rms_norm, gated_norm        norm; the latter of a group
///   causal_convolution, state_space_scan    convolution, scan
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

/// How one axis of devices shares an operator.
struct Cut {
  const Signature* signature = nullptr;
  std::int64_t devices = 1;
};

/// Returns the shape of one device's part by every cut, of one of `batches` equal parts of the
/// batch. Extents are rounded down, but at least 1. Requires a node that computes.
KernelShape kernel_shape(const OperatorGraph& graph, const Node& node, const std::vector<Cut>& cuts,
                         std::int64_t batches);

}  // namespace orrery::spmd
