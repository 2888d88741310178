// SPDX-License-Identifier: Apache-2.0
/// Operator graphs of the zoo's decoders, so that the search sees the models that plans are for.
///
/// Nodes are the zoo's operators (workload/zoo) of the whole batch, with flash attention and fused
/// kernels, their FLOPs, bytes and parameters; views and operators without a forward kernel are
/// none. Tensors of tokens are (b, s, columns), rows of experts (b, E, C, columns) with room C for
/// top_k s / E of a sequence, rounded up. Tensors have 2 bytes an element.
///
/// Signatures are those of decoder_signatures.h. Heads are cut where the devices divide the
/// key-value heads, Mamba-2 and the delta rule where they divide its groups, and samples where they
/// divide half of the batch. For prices as published, products count 3/2 of their FLOPs and others
/// one for each element of their results.
///
/// Ignores: experts with more tokens than others.
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

/// Mistakes: models that predict no tokens of a text, with several residual streams, encoders, or
/// attention to chosen or compressed keys; extents below 1 or too large to count.
Result<OperatorGraph> decoder_graph(const zoo::Model& model, const DecoderSize& size);

}  // namespace orrery::spmd
