// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "cases.h"
#include "workload/plan/recompute.h"
#include "workload/plan/shard.h"

namespace orrery::plan {
namespace {

using cases::small_gpt;

double attention_flops(const Plan& plan) {
  const auto blocks = block_graphs(small_gpt(1), plan);
  double sum = 0;
  for (const zoo::ModelOperator& op : blocks[kFirstLayerBlock].operators) {
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

TEST(Modules, OfTheDenseMlpLeaveTheSharedExpertAlone) {
  // Layer 0 of DeepSeek-V2-Lite is dense, the others have experts, one of them shared; both have
  // silu_mul between gated matrices.
  const zoo::Model model = zoo::load_model("deepseek-v2-lite").value();
  const auto selected = [&](const std::string& module, int kind) {
    std::vector<std::string> names;
    for (const zoo::ModelOperator& op : zoo::layer_operators(model, {.sequence = 64}, kind)) {
      if (recompute_selects({.recompute_modules = module}, op)) {
        names.push_back(op.name);
      }
    }
    return names;
  };
  EXPECT_EQ(selected("mlp", 0), (std::vector<std::string>{"fc1_gemm", "silu_mul", "fc2_gemm"}));
  EXPECT_TRUE(selected("mlp", 1).empty());
  EXPECT_EQ(selected("shared_experts", 1),
            (std::vector<std::string>{"shared_fc1_gemm", "shared_silu_mul", "shared_fc2_gemm",
                                      "shared_sum"}));
}

}  // namespace
}  // namespace orrery::plan
