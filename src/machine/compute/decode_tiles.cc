// SPDX-License-Identifier: Apache-2.0
#include "machine/compute/decode_tiles.h"

#include <algorithm>
#include <cmath>

#include "machine/compute/rates.h"

namespace orrery::compute {

std::optional<DecodeTileTimes> decode_tiles(const DecodeTiles& tiles, const Device& device) {
  const auto set = device.format_kernels.find(kDecodeTiles);
  if (set == device.format_kernels.end()) {
    return std::nullopt;
  }
  const KernelCoefficients& c = set->second;
  graph::Operator op{.name = {}, .kind = graph::OperatorKind::attention, .gemm = {}};
  op.type = tiles.type;
  const Rates rates = rates_of(op, device, clock_of(op, device));
  const double per_pair = 4.0 * static_cast<double>(tiles.head_dim);
  const double per_key = c.attention_tile *
                         std::pow(std::pow(per_pair, 4) + std::pow(c.attention_softmax, 4), 0.25) *
                         rates.units / (rates.flops * c.attention_share);
  const double step = std::max(1.0, c.attention_key_elements / static_cast<double>(tiles.head_dim));
  const auto tile = [&](double keys) { return (keys + c.attention_key_ramp) * per_key; };
  // Lengths differ: they end anywhere in their last tile of keys.
  const double mean = tile(tiles.keys / static_cast<double>(tiles.sequences) + (step - 1) / 2);
  const double longest = std::max(mean, tile(std::ceil(tiles.longest / step) * step));
  const auto group = static_cast<double>(tiles.heads) / static_cast<double>(tiles.kv_heads);
  const bool fits = tiles.kv_head <= device.last_level_cache;
  const double bytes = static_cast<double>(tiles.kv_heads) *
                       static_cast<double>(tiles.kv_head.value()) * (fits ? 1 : group);
  const double all =
      std::max(static_cast<double>(tiles.sequences * tiles.heads) * mean / rates.units,
               bytes / (rates.bandwidth * c.elementwise_share));
  return DecodeTileTimes{.all = from_seconds(all),
                         .longest = from_seconds(longest),
                         .uneven = from_seconds(c.attention_tail * (longest - mean))};
}

double keys_of_part(const DecodeTiles& tiles, std::int64_t most, const Device& device) {
  constexpr std::int64_t kMostParts = 128;
  constexpr double kFull = 0.8;
  constexpr double kNearBest = 0.85;
  const auto set = device.format_kernels.find(kDecodeTiles);
  if (set == device.format_kernels.end() || tiles.windowed || tiles.heads == tiles.kv_heads) {
    return static_cast<double>(most);
  }
  const double waves = static_cast<double>(tiles.sequences * tiles.kv_heads) / (2.0 * device.units);
  if (waves >= kFull) {
    return static_cast<double>(most);
  }
  const std::int64_t block = std::max<std::int64_t>(
      1, std::llround(set->second.attention_key_elements / static_cast<double>(tiles.head_dim)));
  const std::int64_t blocks = (most + block - 1) / block;
  const auto in_part = [&](std::int64_t parts) { return (blocks + parts - 1) / parts; };
  const auto efficiency = [&](std::int64_t parts) {
    const double all = waves * static_cast<double>(parts);
    return parts > 1 && in_part(parts) == in_part(parts - 1) ? 0 : all / std::ceil(all);
  };
  const std::int64_t largest = std::min({kMostParts, blocks, std::int64_t{2} * device.units});
  double best = 0;
  for (std::int64_t parts = 1; parts <= largest; ++parts) {
    best = std::max(best, efficiency(parts));
  }
  std::int64_t parts = 1;
  while (parts < largest && efficiency(parts) < kNearBest * best) {
    ++parts;
  }
  return static_cast<double>(in_part(parts) * block);
}

}  // namespace orrery::compute
