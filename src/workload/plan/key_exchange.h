// SPDX-License-Identifier: Apache-2.0
/// Says how context-parallel ranks that exchange keys and values merge what attention gives for the
/// keys of one rank after the other.
#pragma once

#include "workload/plan/plan.h"

namespace orrery::plan {

/// Says whether keys and values of PyTorch's ranks are joined and merged as
/// torch.distributed.tensor.experimental.context_parallel does it.
inline bool merges_keys(const Plan& plan) {
  return is_pytorch(plan) && plan.cp > 1 &&
         (plan.cp_exchange == ContextExchange::all_gather ||
          plan.cp_exchange == ContextExchange::p2p);
}

/// KeyMerge is what kernels beside attention pass, in the bytes of a rank's queries and of its keys
/// and values.
struct KeyMerge {
  double queries = 0;
  double keys = 0;
  int kernels = 0;
};

/// Returns the work beside attention over r ranks, on the rank that sees all keys (zeros where
/// attention is one kernel).
///
///   PyTorch             merged in fp32; where fused, an element is read and written once a run
///     forward           9 r - 3 queries, eager 23 r - 17; 12 r kernels
///     backward          18 r + 5 queries, eager 30 r + 11; 8 r kernels
///   Transformer Engine  p2p alone, in the type of attention
///     forward           keys and values joined, r row sums, r results: 3 r - 1 queries, 2 keys;
///                       2 r + 1 kernels
///     backward          the buffer of keys, sums of r gradients, of half the keys but in the last
///                       run: 3 r - 1 queries, 3 r / 2 + 3 keys; 3 r + 1 kernels
///
/// Sources: _templated_ring_attention and its backward
/// (torch/distributed/tensor/experimental/_attention.py); AttnFuncWithCPAndKVP2P
/// (transformer_engine/pytorch/attention/dot_product_attention/context_parallel.py).
/// Ignored: bytes of row sums.
inline KeyMerge key_merge(const Plan& plan, bool backward) {
  const bool rings =
      plan.cp_exchange == ContextExchange::p2p || plan.cp_exchange == ContextExchange::a2a_p2p;
  const std::int64_t ring = plan.cp / plan.cp_a2a;
  const auto r = static_cast<double>(ring);
  const int runs = static_cast<int>(ring);
  if (merges_keys(plan)) {
    const double each = backward ? (plan.fused_kernels ? 18 : 30) : (plan.fused_kernels ? 9 : 23);
    const double once = backward ? (plan.fused_kernels ? 5 : 11) : (plan.fused_kernels ? -3 : -17);
    return {.queries = each * r + once, .kernels = (backward ? 8 : 12) * runs};
  }
  if (plan.autograd != Autograd::transformer_engine || !rings || ring == 1) {
    return {};
  }
  return backward ? KeyMerge{3 * r - 1, 1.5 * r + 3, 3 * runs + 1}
                  : KeyMerge{3 * r - 1, 2, 2 * runs + 1};
}

}  // namespace orrery::plan
