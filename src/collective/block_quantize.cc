// SPDX-License-Identifier: Apache-2.0
#include "collective/block_quantize.h"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace orrery::collective {
namespace {

constexpr int kScaleBits = 16;
constexpr std::int64_t kScaleBytes = 4;

/// Returns the least float of 16 significant bits that is not below `value`.
float rounded_up(double value) {
  int exponent = 0;
  const double fraction = std::frexp(value, &exponent);  // [1/2, 1)
  return static_cast<float>(
      std::ldexp(std::ceil(std::ldexp(fraction, kScaleBits)), exponent - kScaleBits));
}

std::int8_t nearest(float value, float scale) {
  const double x = value;
  const double step = scale;
  double q = std::nearbyint(x / step);
  const double off = x - q * step;
  if (std::abs(off) > step / 2) {
    q += off > 0 ? 1 : -1;
  }
  return static_cast<std::int8_t>(q);
}

/// One rank's part of what every rank of a group has, and half a step of each element.
struct SentPart {
  std::vector<float> values;
  std::vector<float> halves;
};

SentPart sent(std::span<const float> values, int bits, std::int64_t block) {
  const QuantizedBlocks quantized = quantize(values, bits, block);
  SentPart part{.values = dequantize(quantized), .halves = {}};
  for (std::size_t i = 0; i < values.size(); ++i) {
    part.halves.push_back(quantized.scales[i / static_cast<std::size_t>(block)] / 2);
  }
  return part;
}

void add(std::vector<float>& sum, std::span<const float> more) {
  for (std::size_t i = 0; i < sum.size(); ++i) {
    sum[i] += more[i];
  }
}

/// Returns the shards of the ranks with that place in each node, one after the other.
std::vector<float> of_place(const std::vector<float>& values, std::size_t place, std::size_t near,
                            std::size_t shard) {
  std::vector<float> own;
  for (std::size_t first = place * shard; first < values.size(); first += near * shard) {
    own.insert(own.end(), values.data() + first, values.data() + first + shard);
  }
  return own;
}

}  // namespace

Bytes quantized_bytes(std::int64_t elements, int bits, std::int64_t block) {
  const std::int64_t blocks = elements / block + (elements % block > 0 ? 1 : 0);
  const Bytes values = bits == 8 ? Bytes(elements) : Bytes(elements / 2 + elements % 2);
  return values + Bytes(kScaleBytes) * blocks;
}

QuantizedBlocks quantize(std::span<const float> values, int bits, std::int64_t block) {
  assert((bits == 8 || bits == 4) && block >= 1 && "integers of 8 or 4 bits in blocks");
  const double most = (1 << (bits - 1)) - 1;
  QuantizedBlocks blocks{.bits = bits, .block = block, .values = {}, .scales = {}};
  blocks.values.reserve(values.size());
  for (std::size_t first = 0; first < values.size(); first += static_cast<std::size_t>(block)) {
    const std::size_t count = std::min(values.size() - first, static_cast<std::size_t>(block));
    double largest = 0;
    for (const float value : values.subspan(first, count)) {
      largest = std::max(largest, std::abs(static_cast<double>(value)));
    }
    const float scale = largest > 0 ? rounded_up(largest / most) : 0;
    blocks.scales.push_back(scale);
    for (const float value : values.subspan(first, count)) {
      blocks.values.push_back(scale > 0 ? nearest(value, scale) : std::int8_t{0});
    }
  }
  return blocks;
}

std::vector<float> dequantize(const QuantizedBlocks& blocks) {
  std::vector<float> values;
  values.reserve(blocks.values.size());
  for (std::size_t i = 0; i < blocks.values.size(); ++i) {
    values.push_back(static_cast<float>(blocks.values[i]) *
                     blocks.scales[i / static_cast<std::size_t>(blocks.block)]);
  }
  return values;
}

TwoHopSum two_hop_sum(const std::vector<std::vector<float>>& by_rank, std::size_t near, int bits,
                      std::int64_t block) {
  const std::size_t ranks = by_rank.size();
  const std::size_t nodes = ranks / near;
  const std::size_t shard = by_rank.front().size() / ranks;
  TwoHopSum result{.shards = std::vector<std::vector<float>>(ranks, std::vector<float>(shard)),
                   .bounds = std::vector<std::vector<float>>(ranks, std::vector<float>(shard))};
  // Rank `place` of every node gathers the shards of the ranks with that place, of all nodes.
  for (std::size_t place = 0; place < near; ++place) {
    for (std::size_t node = 0; node < nodes; ++node) {
      std::vector<float> sum(nodes * shard);
      std::vector<float> bound(nodes * shard);
      for (std::size_t from = node * near; from < (node + 1) * near; ++from) {
        const SentPart part = sent(of_place(by_rank[from], place, near, shard), bits, block);
        add(sum, part.values);
        add(bound, part.halves);
      }
      for (std::size_t other = 0; other < nodes; ++other) {
        const std::size_t to = other * near + place;
        const std::span<const float> own(sum.data() + other * shard, shard);
        const SentPart part = sent(own, bits, block);
        add(result.shards[to], part.values);
        add(result.bounds[to], part.halves);
        add(result.bounds[to], std::span<const float>(bound.data() + other * shard, shard));
      }
    }
  }
  return result;
}

}  // namespace orrery::collective
