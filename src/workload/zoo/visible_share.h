// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "workload/zoo/model.h"

namespace orrery::zoo {

/// Returns the share of model_flops_per_sequence() that remains where attention counts the pairs
/// that its masks leave, instead of the whole square: 1 of models without causal attention.
///
///   sum of min(model FLOPs, FLOPs that a fused kernel does) / sum of model FLOPs
///
/// so that a causal layer counts half of its S^2 pairs. Both counts are usual: FlashAttention's
/// benchmarks halve the square, Megatron-LM's tables keep it whole. Source: Dao, FlashAttention-2
/// (2023), section 4.1; Narayanan et al., SC'21, appendix.
/// Requires: sequence >= 1. 1 of a model without layers.
double visible_share(const Model& model, std::int64_t sequence);

}  // namespace orrery::zoo
