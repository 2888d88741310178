// SPDX-License-Identifier: Apache-2.0
#include "graph/operator.h"

#include <gtest/gtest.h>

namespace orrery::graph {
namespace {

TEST(Operator, ArraysArePackedAndRoundUpToBytes) {
  // Five fp4 elements are 20 bits, three bytes; five bf16 are ten.
  EXPECT_EQ(bytes_of(DataType::fp4, 5), 3_B);
  EXPECT_EQ(bytes_of(DataType::fp4, 4), 2_B);
  EXPECT_EQ(bytes_of(DataType::bf16, 5), 10_B);
  EXPECT_EQ(bytes_of(DataType::fp32, 0), 0_B);
}

TEST(Operator, OneElementFillsWholeBytes) {
  EXPECT_EQ(size_of(DataType::fp4), 1_B);
  EXPECT_EQ(size_of(DataType::fp8), 1_B);
  EXPECT_EQ(size_of(DataType::fp16), 2_B);
  EXPECT_EQ(size_of(DataType::tf32), 4_B);
}

TEST(Operator, SizesBeyondSixtyFourBitsSaturate) {
  EXPECT_TRUE(bytes_of(DataType::bf16, std::int64_t{1} << 62).is_overflow());
  EXPECT_EQ(bytes_of(DataType::fp8, std::int64_t{1} << 62), Bytes(std::int64_t{1} << 62));
}

}  // namespace
}  // namespace orrery::graph
