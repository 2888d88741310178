// SPDX-License-Identifier: Apache-2.0
/// Operator graphs of the zoo's decoders, so that the search sees the models that plans are for.
///
/// Embedding; layers (decoder_layers.h): attention, also MLA, of windows or chunks and with sinks,
/// or Mamba-2, an MLP or experts; norm, logits, log-softmax, loss. Then for each depth of
/// multi-token prediction: the embedding of tokens further on, a norm of that and one of what the
/// layers made, both side by side projected to one, layers, norm, logits, loss: the same table and
/// head again. Every expert gets top_k S / E rows of a sequence. Tensors have 2 bytes an element.
/// Heads may be sliced where the devices divide the key-value heads, Mamba-2 where they divide its
/// groups, and samples where they divide half of the batch.
///
/// Ignores: biases, dropout, position tables; norms of heads; the clamp before an activation, and
/// which function it is; a gate of the shared expert; experts with more tokens than others; a tied
/// embedding is two tables.
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

/// Mistakes: models whose layers are not pre-norm, causal and of these operators, that predict no
/// tokens, or with several residual streams; extents below 1 or too large to count.
Result<OperatorGraph> decoder_graph(const zoo::Model& model, const DecoderSize& size);

}  // namespace orrery::spmd
