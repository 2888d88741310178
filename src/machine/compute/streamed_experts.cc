// SPDX-License-Identifier: Apache-2.0
#include "machine/compute/streamed_experts.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace orrery::compute {

Time streamed_experts(const graph::Operator& product, double scale_bits, std::int64_t tokens,
                      const Device& device) {
  constexpr std::int64_t kMostTokens = 512;
  const bool fp4 = product.stored_bits == graph::bits_of(graph::DataType::fp4);
  const auto set = device.format_kernels.find(fp4 ? kStreamedFp4 : kStreamedFp8Block);
  if (set == device.format_kernels.end() || graph::bits_of(product.type) > 8 ||
      !(fp4 || product.block_scaled) || tokens > kMostTokens) {
    return Time(0);
  }
  const KernelCoefficients& c = set->second;
  const auto peak =
      device.peak[static_cast<std::size_t>(fp4 ? graph::DataType::fp4 : graph::DataType::fp8)];
  const auto weights = static_cast<double>(product.gemm.batch * product.gemm.n) *
                       static_cast<double>(product.gemm.k) *
                       (static_cast<double>(product.stored_bits) + scale_bits) / 8;
  const Time read =
      Bytes(std::llround(weights / c.gemm_memory_share)) / device.memory.front().bandwidth;
  return c.gemm_launch + std::max(read, Flops(product.flops.value() / c.gemm_peak_share) / peak);
}

Time mixed_experts_later(const graph::Operator& product, Time grouped, bool marlin,
                         const Device& device) {
  const auto set = device.format_kernels.find(kMixedExperts);
  if (product.stored_bits != graph::bits_of(graph::DataType::fp4) ||
      graph::bits_of(product.type) != 16 || set == device.format_kernels.end()) {
    return Time(0);
  }
  const KernelCoefficients& c = set->second;
  Time later = c.grouped_launch - device.kernels_of(product).grouped_launch;
  if (marlin) {
    constexpr std::array<std::int64_t, 5> kTiles{8, 16, 32, 48, 64};  // rows
    graph::GemmShape tiles = product.gemm;
    const auto* const fits =
        std::ranges::find_if(kTiles, [&](std::int64_t tile) { return 10 * tiles.m < 9 * tile; });
    const std::int64_t tile = fits == kTiles.end() ? kTiles.back() : *fits;
    tiles.m = std::max(tile, tiles.m + tile / 2);
    const auto peak = device.peak[static_cast<std::size_t>(product.type)];
    const Time products = Flops(flops_of(tiles).value() / c.gemm_peak_share) / peak;
    later = std::max(later, c.grouped_launch + products - grouped);
  }
  return later;
}

}  // namespace orrery::compute
