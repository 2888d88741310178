// SPDX-License-Identifier: Apache-2.0
/// ZeRO's gathers and reductions as blocks of integers, and those that stay inside a node. n
/// elements, d ranks, q_b(n) = quantized_bytes(n, b, quantized_block), e and r bytes of
/// compute_type and grad_reduce_type:
///
///   quantized_gather   zero 3. Every gather of parameters, of updated ones too, moves q_8(n) for
///                      e n. Before it a kernel reads e n / d and writes q_8(n) / d, after it one
///                      reads q_8(n) and writes e n.
///   quantized_reduce   zero 1 to 3. Every reduce-scatter becomes an all-to-all of q_4(n), between
///                      a kernel that reads r n and writes q_4(n) and one that reads q_4(n) and
///                      writes the sum, r n / d. Over more than reduce_hop ranks (0:
///                      secondary_shard) two of them: the ranks of a node first, then n /
///                      reduce_hop elements over the ranks with the same place in it.
///   secondary_shard    zero 3. After a forward gather every rank keeps 1/s of the parameters,
///                      which a kernel copies (2 e n / s); backward gathers are over these s ranks.
///
/// A step of ZeRO 3 with n ranks on nodes of s, W = e P and one microbatch:
///
///                      all ranks                        inside a node
///   plain              W gathered twice, W scattered
///   all three          W/2 + W/(4 s)                    W/2 + W/4        (r = e = 2, scales apart)
///   degrees (dw, dg, do) of shard_params, shard_grads, shard_optimizer put each on its own level:
///                      W/(4 dg), and W/dw of updated parameters    2 W over dw, W over dg
///
/// Requires:  16-bit parameters that no recipe quantises (quantization none).
/// Ignores:   that the kernels run on a stream of their own: here they take their turn on that of
///            all kernels. Expert parameters are gathered and reduced in one hop, and have no
///            second copy.
/// Source:    Wang et al. 2023, "ZeRO++" (arXiv:2306.10209), section 3; Xu et al. 2025
///            (arXiv:2501.04266), whose layout of degrees is recalled.
#pragma once

#include <optional>
#include <vector>

#include "workload/plan/axes.h"
#include "workload/plan/plan.h"

namespace orrery::plan {

inline constexpr int kGatherBits = 8;
inline constexpr int kReduceBits = 4;

/// Returns the bytes of `stored` parameters in compute_type as quantized_gather moves them.
Bytes quantized_gather_bytes(const Plan& plan, Bytes stored);
/// Returns the bytes of gradients of `wire` bytes in grad_reduce_type as quantized_reduce moves
/// them.
Bytes quantized_reduce_bytes(const Plan& plan, Bytes wire);

/// One all-to-all in place of a reduce-scatter, or half of one.
struct ReduceHop {
  Axis axis = Axis::dp;
  std::int64_t divisor = 1;  ///< its elements are this share of the reduce-scatter's
  std::int64_t ranks = 1;
};
/// Returns the hops of a reduce-scatter over `axis`, which has `ranks` members.
std::vector<ReduceHop> reduce_hops(const Plan& plan, Axis axis, std::int64_t ranks);

/// Returns the number of ranks of the first hop where there are two; 0: there is one.
std::int64_t near_ranks(const Plan& plan);

/// Returns the axis of backward gathers of dense parameters whose forward is gathered over
/// `forward`.
inline Axis backward_gather_axis(const Plan& plan, Axis forward) {
  return plan.secondary_shard > 0 && forward != Axis::edp ? Axis::secondary : forward;
}

/// Every reason why these fields cannot be.
Error low_bandwidth_mistakes(const Plan& plan);

}  // namespace orrery::plan
