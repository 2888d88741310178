// SPDX-License-Identifier: Apache-2.0
/// Operator graphs of the zoo's decoders, so that the search sees the models that plans are for.
///
/// Layer: norm, three projections (MLA: through latents), causal attention (rotation and scores are
/// one operator), its projection, sum; norm, one projection or two, activation, projection, sum.
/// With experts, instead of the latter: a router that fills their slots, rows copied to the slots,
/// the experts' projections and activation, weighted sums of the rows; the shared expert. Every
/// expert gets top_k S / E rows of a sequence. Then norm, logits, log-softmax, loss. Tensors have 2
/// bytes an element. Flops as in models.h, attention of the whole square. Heads may be sliced where
/// the devices divide the key-value heads, and samples where they divide half of the batch.
///
/// Ignores: biases, dropout, position tables; norms of heads; a gate of the shared expert; experts
/// with more tokens than others; a tied embedding is two tables.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "planner/spmd/operator_graph.h"
#include "workload/zoo/model.h"

namespace orrery::spmd {

struct DecoderSize {
  std::int64_t devices = 8;
  std::int64_t batch = 0;     ///< sequences of a step; 0: two a device
  std::int64_t sequence = 0;  ///< 0: the model's
  std::int64_t layers = 0;    ///< 0: the model's
  bool mesh = false;          ///< which slices are whole is for the prices of a mesh to say
};

/// Mistakes: models that are not of pre-norm layers of causal attention and an MLP or experts, or
/// with multi-token prediction; extents
/// below 1 or too large to count.
Result<OperatorGraph> decoder_graph(const zoo::Model& model, const DecoderSize& size);

}  // namespace orrery::spmd
