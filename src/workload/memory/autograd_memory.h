// SPDX-License-Identifier: Apache-2.0
/// Autograd memory is what software keeps from forward to backward where it differs from
/// ModelOperator::saved, and what its libraries hold all the step.
///
///   T tokens of a rank, h hidden, F MLP width, q and k widths of queries and keys, a heads, V
///   vocabulary, W the bytes of its table in the compute type; sizes are those of 16 bits
///
///   a token and layer          pytorch               hugging_face     transformer_engine
///   norm: input, statistics    2h + 4                6h + 4           2h + 4
///     with autocast            4h + 4                -                -
///     the second, compiled     2h + 4                -                -
///   queries, keys, values      2(q + 2k)             2k: values       2(q + 2k)
///   rotated                    2(q + k)              2(q + k)         0
///   torchtitan                 as pytorch, but 2q of values and 4q rotated: a key for every head
///   SwiGLU, with its product   8F; compiled 6F       8F               6F
///   a layer that runs again    2h; with autocast 4h  2h               2h
///
///   loss, a logit              eager 12: log-softmax, its gradient and that of the logits, each in
///                              fp32 (forward 10), of vocabulary shards 16 / t; Megatron's own 6
///                              under either autograd; fused 2, then W: the table's gradient
///   backward of a layer        fc1's gradients 2h + 4F; transformer_engine 2h / t more, the
///                              gradient of the residual stream
///   tied tables                W from the head's backward to that of the embedding, 2 W there
///   workspaces                 32 MiB of cuBLAS for each of the forward and backward threads;
///                              transformer_engine three, and 2 B for every element of one dense
///                              weight of each shape: a gradient that is written and not read
///   cp a2a                     transformer_engine: queries once more, as they were exchanged
///   autocast                   copies of weights, 2 B each, until the layer's backward
///
/// A norm with shift keeps 8 bytes of statistics. The statistics of transformer_engine are left
/// out.
///
/// Ignores:  dropout of adapters; modules whose operators others than these two families have.
/// Source:   own runs on an H200 with PyTorch 2.11 (97,416 bytes a token and layer of Llama 3.2 1B
///           by this table and measured), MooreThreads/SimuMax v1.2 (B200), pytorch/torchtitan.
#pragma once

#include <cstddef>
#include <vector>

#include "base/units.h"
#include "workload/plan/model_parts.h"
#include "workload/plan/plan.h"
#include "workload/zoo/model.h"

namespace orrery::footprint {

/// Returns what the operator keeps, of `saved` bytes that it does with hand-written kernels.
/// `later_norm`: it is no block's first norm.
Bytes kept_by_autograd(const zoo::Model& model, const plan::Plan& plan,
                       const zoo::ModelOperator& op, Bytes saved, bool later_norm);

/// Returns what stays of `kept` where every other GEMM runs again (recompute_modules
/// every_other_gemm): the layer's input, queries and values, attention's result with its row sums,
/// the gate's half of fc1's result. 15.5 h + 4 a a token and layer of Llama 3 8B with fc2's result,
/// 2 h, which is the next layer's input here.
Bytes kept_beside_every_other(const zoo::Model& model, const plan::Plan& plan,
                              const zoo::ModelOperator& op, Bytes kept, bool later_norm);

/// Returns what a rank's libraries hold, from the operators of its blocks.
Bytes library_workspaces(const plan::Plan& plan, const std::vector<zoo::ModelGraph>& blocks);

}  // namespace orrery::footprint
