// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "cases.h"
#include "workload/plan/shard.h"

namespace orrery::plan {
namespace {

using cases::small_gpt;

double attention_flops(const Plan& plan) {
  const auto blocks = block_operators(small_gpt(1), plan);
  double sum = 0;
  for (const zoo::ModelOperator& op : blocks[kFirstLayerBlock]) {
    sum += op.kind == graph::OperatorKind::attention ? op.forward_flops.value() : 0;
  }
  return sum;
}

TEST(Documents, AttentionIsQuadraticInEachDocument) {
  // 128 = 64 + 32 + 32: (64^2 + 2 x 32^2) / 128^2 = 3/8 of the pairs.
  Plan plan{.attention = zoo::AttentionKernel::flash};
  const double whole = attention_flops(plan);
  plan.documents = "64, 32,32";
  EXPECT_DOUBLE_EQ(attention_flops(plan), whole * 3 / 8);
  EXPECT_TRUE(check(plan, small_gpt(1)));
  plan.documents = "128";
  EXPECT_DOUBLE_EQ(attention_flops(plan), whole);
}

}  // namespace
}  // namespace orrery::plan
