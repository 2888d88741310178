// SPDX-License-Identifier: Apache-2.0
/// A block's operators and the layouts of its tensors -> steps of a forward and a backward pass.
///
/// Forward, in their order, of each operator: the sums in the middle of its work, what it reads
/// converted, its kernels, what it writes converted. Backward, in reverse: gradients of what it
/// writes converted, its kernels, gradients of what it reads converted, beside its weight gradient
/// (CutAxis::issue). Where the copy that it keeps of its input lies in shards, these are gathered
/// again: beside the input gradient's product, as the weight gradient alone reads them, or, if
/// there is no weight, before the kernel. Every conversion is waited for by who reads its result.
///
/// Chunks n > 1 (CutAxis::chunks) cut a product and the one collective beside it into n pieces of
/// its rows, as Transformer Engine's userbuffers do:
///
///   gather, then product   piece i of the product waits for piece i of the gather, piece i+1 is
///                          gathered beside it:  g + max(g, c) (n-1) + c  for pieces of g and c
///   product, then sum      piece i is summed beside piece i+1 of the product
///
/// Every piece pays the product's launch and the collective's latency. What is kept and gathered
/// again, and sums of input gradients, run beside whole products in any case. An adapter's products
/// are never cut: where a frozen product and its adapter read the same gather in the same type, the
/// product is the one beside it, and the adapter follows.
///
/// Copied chunks (CutAxis::copies_chunks; N ranks, V bytes gathered or summed), as PyTorch's
/// asynchronous tensor parallelism makes them: engines copy V/N between buffers of two ranks.
///
///   gather, then product   the own shard is put into its buffer (2 V/N of memory traffic); the
///                          own piece, then N-1 of the others, whose copies run beside the piece
///                          before
///   product, then sum      N-1 pieces, each copied to its rank beside the next, the own one last;
///                          then a kernel adds N parts up (V + V/N)
///
/// Ignored of these: barriers between the ranks, pieces of two streams that run beside each other.
///
/// The shared expert beside the exchange (Choice::shared_concurrent): its steps up to its second
/// product follow the exchange to the experts, the others that back.
///
/// Source: Wang et al., ASPLOS 2023 (decomposed overlap); torch/distributed/_symmetric_memory,
/// _pipelined_all_gather_and_consume and _pipelined_produce_and_all2all.
#pragma once

#include <vector>

#include "workload/lower/kernels.h"

namespace orrery::lower {

/// Lowers a block. `own`: one rank's shares of the block's operators, which `choice` is of.
BlockSteps lower_block(const std::vector<zoo::ModelOperator>& own, const Choice& choice,
                       const Kernels& kernels);
/// Returns its forward pass alone.
std::vector<Step> lower_forward(const std::vector<zoo::ModelOperator>& own, const Choice& choice,
                                const Kernels& kernels);

}  // namespace orrery::lower
