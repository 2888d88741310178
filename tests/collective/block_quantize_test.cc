// SPDX-License-Identifier: Apache-2.0
#include "collective/block_quantize.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <limits>

namespace orrery::collective {
namespace {

std::vector<float> random_values(std::size_t count, int exponents) {
  std::vector<float> values;
  for (std::size_t i = 0; i < count; ++i) {
    const double fraction = *rc::gen::inRange(-(1 << 24), 1 << 24);
    values.push_back(
        static_cast<float>(std::ldexp(fraction, *rc::gen::inRange(-exponents, exponents))));
  }
  return values;
}

TEST(QuantizedBytes, CountValuesAndScales) {
  // 4,096 elements in blocks of 256: 16 scales of 4 bytes; 1 byte an element, or half a byte.
  EXPECT_EQ(quantized_bytes(4096, 8, 256), Bytes(4096 + 64));
  EXPECT_EQ(quantized_bytes(4096, 4, 256), Bytes(2048 + 64));
  // An odd last element and a part of a block have a byte and a scale of their own.
  EXPECT_EQ(quantized_bytes(257, 4, 256), Bytes(129 + 8));
  EXPECT_EQ(quantized_bytes(0, 8, 256), Bytes(0));
}

TEST(Quantize, ByHand) {
  // Largest 127 of 8 bits: s = 1, so integers stay and 2.5 is 2 or 3. Of 4 bits s = 127 / 7 in 16
  // significant bits: 18.142857 -> 18.143066.
  const std::vector<float> values{127, -3, 2.5F, 0};
  const QuantizedBlocks eight = quantize(values, 8, 4);
  EXPECT_EQ(eight.scales, std::vector<float>{1});
  EXPECT_EQ(eight.values[0], 127);
  EXPECT_EQ(eight.values[1], -3);
  EXPECT_EQ(std::abs(dequantize(eight)[2] - 2.5F), 0.5F);
  const QuantizedBlocks four = quantize(values, 4, 4);
  EXPECT_NEAR(four.scales[0], 127.0 / 7, 4e-4);
  EXPECT_GE(four.scales[0], 127.0F / 7);
  EXPECT_EQ(four.values, (std::vector<std::int8_t>{7, 0, 0, 0}));
}

TEST(Quantize, ZerosStayZero) {
  EXPECT_EQ(dequantize(quantize(std::vector<float>(5, 0), 4, 2)), std::vector<float>(5, 0));
}

RC_GTEST_PROP(Quantize, IsOffByHalfAStepAtTheMost, ()) {
  const int bits = *rc::gen::element(4, 8);
  const std::int64_t block = *rc::gen::inRange(1, 40);
  const std::vector<float> values =
      random_values(*rc::gen::inRange<std::size_t>(1, 100), *rc::gen::element(1, 10, 60));
  const QuantizedBlocks blocks = quantize(values, bits, block);
  const std::vector<float> back = dequantize(blocks);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double step = blocks.scales[i / static_cast<std::size_t>(block)];
    RC_ASSERT(std::abs(double{values[i]} - double{back[i]}) <= step / 2);
    RC_ASSERT(std::abs(int{blocks.values[i]}) <= (1 << (bits - 1)) - 1);
    RC_ASSERT(double{back[i]} == blocks.values[i] * step);  // the product is not rounded
  }
}

RC_GTEST_PROP(TwoHops, SumAsOneReduceScatterUpToTheBound, ()) {
  const std::size_t near = *rc::gen::element<std::size_t>(1, 2, 4);
  const std::size_t nodes = *rc::gen::element<std::size_t>(1, 2, 3);
  const std::size_t ranks = near * nodes;
  const std::size_t shard = *rc::gen::inRange<std::size_t>(1, 20);
  const int bits = *rc::gen::element(4, 8);
  std::vector<std::vector<float>> values;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    values.push_back(random_values(ranks * shard, 4));
  }
  const TwoHopSum sum = two_hop_sum(values, near, bits, 8);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    for (std::size_t i = 0; i < shard; ++i) {
      double exact = 0;
      double absolute = 0;
      for (const std::vector<float>& one : values) {
        exact += double{one[rank * shard + i]};
        absolute += std::abs(double{one[rank * shard + i]});
      }
      // What adding floats rounds: each of at most `ranks` sums by half an ulp of its size.
      const double rounding =
          2 * static_cast<double>(ranks) * absolute * std::numeric_limits<float>::epsilon();
      const double bound = double{sum.bounds[rank][i]} * (1 + 1e-6) + rounding;
      RC_ASSERT(std::abs(double{sum.shards[rank][i]} - exact) <= bound);
    }
  }
}

}  // namespace
}  // namespace orrery::collective
