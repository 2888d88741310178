// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "base/units.h"
#include "graph/operator.h"
#include "machine/compute/device.h"

namespace orrery::compute {

/// Products of narrow experts with kernels made for few rows, which stream the weights of the
/// experts that are reached: sets of coefficients that a machine file may give, by stored format.
/// TensorRT-LLM's generated kernels, which vLLM and SGLang call through FlashInfer.
inline constexpr std::string_view kStreamedFp4 = "streamed_fp4";
inline constexpr std::string_view kStreamedFp8Block = "streamed_fp8_block";
/// Products of experts of 4 bits under operands of 16, which start later; of this set
/// grouped_launch and gemm_peak_share count.
inline constexpr std::string_view kMixedExperts = "experts_w4a16";
inline constexpr std::array kExpertSets{kStreamedFp4, kStreamedFp8Block, kMixedExperts};

/// Returns what such a product takes of a step of T `tokens`, whose weights have `scale_bits`
/// beside their own:
///
///   gemm_launch + max(bytes of weights / (gemm_memory_share bandwidth),
///                     FLOPs / (gemm_peak_share peak))            at the peak of the stored format
///
/// Zero where the device has no such kernels: operands wider than 8 bits, no set of the format, or
/// more than the 512 tokens that tables of them end at. Ignores: what activations read and write.
Time streamed_experts(const graph::Operator& product, double scale_bits, std::int64_t tokens,
                      const Device& device);

/// Returns how much later than `grouped`, the time of a grouped product of its type, one with
/// kMixedExperts ends:
///
///   grouped_launch of the set - that of the type; with `marlin` at least
///   grouped_launch + 2 E max(tile, m + tile / 2) n k / (gemm_peak_share peak) - grouped
///
/// for E experts of m rows each. Marlin, which vLLM and SGLang call, multiplies by instructions of
/// one warp, in tiles of the fewest of 8, 16, 32, 48 and 64 rows of which m is below 0.9, else 64
/// (source: vLLM's fused_marlin_moe). Zero for other products and devices without the set.
Time mixed_experts_later(const graph::Operator& product, Time grouped, bool marlin,
                         const Device& device);

}  // namespace orrery::compute
