// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/units.h"
#include "graph/operator.h"
#include "machine/compute/device.h"
#include "machine/compute/systolic.h"

namespace orrery::compute {

/// Time of one operator alone on the device, and the same beside communication: `overlap_units` of
/// the units and `overlap_memory` of the memory bandwidth are a collective's, `overlap_send_units`
/// of the units a point-to-point message's.
struct KernelTime {
  Time alone{0};
  Time beside_collective{0};  ///< >= alone
  Time beside_message{0};     ///< >= alone
};

/// Returns the time of a kernel by a roofline with shape-dependent GEMM efficiency.
///
/// GEMM C[m,n] = A[m,k] B[k,n], `batch` times, e bytes per element of A and B, max(e, 2) of C (fp8
/// and fp4 GEMMs write 16 bits; B with Operator::stored_bits in those): the fastest tile bm x bn of
/// a short list and split s of K (1, 2, 3, 4 or what fills the units, where tiles are few):
///
///   tiles   = batch ceil(m/bm) ceil(n/bn)
///   waves   = tiles s / units, of which the last may be partial
///   compute = (k/s + k_ramp) 2 sqrt((bm bn)^2 + (tile_load (bm+bn))^2) / rate      of a wave
///   memory  = batch (e (mk + kn) + max(e, 2) mn) / (bandwidth memory_share) / waves
///   time    = launch + full waves * max(compute, memory)
///             + max(compute (q + (1-q) partial), memory partial)
///             + [s > 1] (split_latency + split_traffic 4 s batch mn / bandwidth)
///   q       = wave_quantisation; 1 if the partial wave is the only one
///
/// where rate is such that a 256 x 128 tile of deep K runs at peak * peak_share / units.
/// Opaque: launch + max(flops / (peak * peak_share), bytes / (bandwidth * memory_share)).
///
/// Fused attention of `batch` heads, m queries of n keys, d = k elements, F = 4 d FLOPs a pair
/// (backward 10 d), r = flops / (batch m F) visible keys of a query, in tiles of t queries (16
/// where m < 16):
///
///   tile(x) = t (x + key_ramp) (F^4 + softmax^4)^(1/4) units / (peak * attention_share)
///   total   = batch ceil(m/t) tile(min(r + e max(t, u)/2, n)) / units
///   e       = 2 of a window (2 r < n), or 1;  n rounded up to a multiple of u, if there is one
///   u       = keys computed at a time: the power of two up to key_elements / d, at most 256
///   longest = tile(min(2 r, n)), no less than a mean tile; 0 where m < 16, whose keys are split
///             (with u = 0; prompts of TensorRT-LLM's have no smaller tiles and are not split)
///   time    = launch + max(max(longest, total + tail longest) + traffic rows / bandwidth,
///                          bytes / (bandwidth elementwise_share))
///             of m < 16, m < n: (that^3 + (key_heads attention_start / units)^3)^(1/3), its bytes
///             at min(elementwise_share, key_heads attention_head_share)
///   rows    = bytes of queries and output, backward twice
///   bandwidth of prompts (m = n, forward) times last_level_speedup where bytes fit the
///             last-level cache, in which the kernel before has left them; cache writes alike
///
/// Without tiles (attention_tile = 0, or no shape): gemm_launch + flops / (peak * attention_share),
/// or its bytes if longer; so is a scan, with scan_(backward_)share and 0.365 of bandwidth. Others:
/// stream_launch per kernel + bytes / (bandwidth * share of the kind); a norm over rows of w
/// elements has long_share + (norm_share - long_share) / (1 + (w / norm_width)^3). Backwards of
/// streaming kernels and norms, updates (of 32- and of 16-bit states) and sums of gradients have
/// shares of their own where the device gives them. Rows of an odd number of 16-bit elements begin
/// on no boundary that wide loads need: a GEMM whose result has them computes odd_rows times as
/// long, the gradient of its input odd_rows_input times, of its weight odd_rows_weight times; a
/// gradient of an input whose rows are no multiple of 128 elements, of whole tiles of as many
/// tokens, uneven_rows times.
/// Coefficients are those of the operator's number format, Device::kernels_of.
/// An operator with a duration takes that, and beside communication as much longer as it says
/// itself: what limits it is not known. A grouped GEMM is timed as a batched one whose K is never
/// split, with further grouped_launch and grouped_k_ramp: the tiles of all experts share one
/// launch.
///
/// Every peak above is peak * Device::clock, the rate that the power cap leaves (clock.h).
///
/// Shapes:   Operator::gemm; a norm's row length is gemm.k (0 = short).
/// Ignores:  caches otherwise (operands are read once).
/// Requires: a device that supports op.type (peak > 0) for gemm, grouped_gemm and attention, and
///           for opaque ones with FLOPs.
/// Source:   structure after the tile and wave quantisation of NVIDIA's matrix-multiplication
///           guide, and after FlashAttention-2 and -3 (Dao 2023; Shah et al. 2024), whose
///           exponentials run beside the matrix units; coefficients: tools/fit_gemm.py,
///           tools/fit_attention.py, origins in the machine files.
///
/// A device of model systolic (device.h) differs in products: GEMMs, also grouped ones, take
///
///   launch + cycles / clock,   clock = peak / (2 rows cols arrays)
///
/// with the cycles and stalls of systolic.h at bandwidth memory_share, elements as wide as the
/// type's and results of 16 bits or more. Fused attention is its products (2 forward, 5 backward)
/// of the keys that a query sees, whose scores stay on the chip: their cycles without stalls, or
/// its bytes if longer. All other kernels are as above.
///
/// Devices of model pim and spatial have pim.h and spatial.h instead, for all kernels.
///
/// A piece of a kernel (Operator::pieces) takes its part of the whole kernel's times.
KernelTime kernel_time(const graph::Operator& op, const Device& device);
/// Returns the `alone` of kernel_time, at a third of the work.
Time lone_kernel_time(const graph::Operator& op, const Device& device);
/// The same with so large a share of the tables' rate as `clock`, whatever the device's clocks are.
Time lone_kernel_time(const graph::Operator& op, const Device& device, double clock);

/// The product `op` (gemm or grouped_gemm) on the arrays of a device of model systolic.
struct SystolicKernel {
  SystolicProblem problem{};
  SystolicCost cost{};
  Energy energy{0};
};
/// Returns the time on systolic arrays. `stalls`: waits for memory count; `sparsity`: of B.
SystolicKernel systolic_kernel(const graph::Operator& op, const Device& device,
                               const Sparsity& sparsity = {}, bool stalls = true);

}  // namespace orrery::compute
