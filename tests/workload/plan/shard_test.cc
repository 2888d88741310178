// SPDX-License-Identifier: Apache-2.0
#include "workload/plan/shard.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "workload/plan/quantize.h"

namespace orrery::plan {
namespace {

zoo::Model flash() {
  auto model = zoo::load_model("deepseek-v4-flash");
  EXPECT_TRUE(model.has_value());
  return model.value_or(zoo::Model{});
}

zoo::ModelOperator find(const std::vector<zoo::ModelOperator>& operators, const std::string& name) {
  const auto found = std::find_if(operators.begin(), operators.end(),
                                  [&](const auto& op) { return op.name == name; });
  EXPECT_NE(found, operators.end()) << name;
  return found == operators.end() ? zoo::ModelOperator{} : *found;
}

TEST(Shard, SequencesAreThoseOfThePreTraining) {
  zoo::Model model;
  model.max_positions = 4096;
  EXPECT_EQ(sequence_of(model, {}), 4096);
  model.trained_positions = 1024;
  EXPECT_EQ(sequence_of(model, {}), 1024);
  EXPECT_EQ(sequence_of(model, {.sequence = 2048}), 2048);
}

TEST(Shard, StagesExchangeEveryStreamOfTheResidual) {
  // 4096 tokens of 4 streams of 4096 elements of bf16.
  const Plan plan{.sequence = 4096};
  EXPECT_EQ(hidden_bytes(flash(), plan), Bytes(2LL * 4096 * 4096));
  EXPECT_EQ(boundary_bytes(flash(), plan), Bytes(2LL * 4096 * 4 * 4096));
}

TEST(Shard, MatricesOfGroupsOfHeadsAreSplitByGroup) {
  // 8 groups of 4096 x 1024 over 4 ranks.
  const auto layer = zoo::layer_operators(flash(), {.sequence = 4096});
  const zoo::ModelOperator whole = find(layer, "proj_a_gemm");
  const zoo::ModelOperator part = shard(whole, 4, false);
  EXPECT_EQ(part.gemm, (graph::GemmShape{.batch = 2, .m = 4096, .n = 1024, .k = 4096}));
  EXPECT_EQ(part.parameters, 2LL * 4096 * 1024);
  EXPECT_EQ(weight_elements(part), part.parameters);
  EXPECT_DOUBLE_EQ(part.forward_flops.value(), whole.forward_flops.value() / 4);
  EXPECT_EQ(part.saved, whole.saved / 4);
}

TEST(Quantize, MixingWeightsOfTheStreamsStayAsTheyAre) {
  const Plan plan{.quantization = Quantization::mxfp8};
  const auto layer = zoo::layer_operators(flash(), {.sequence = 4096});
  EXPECT_FALSE(is_quantized(plan, find(layer, "attention_mix_gemm")));
  EXPECT_FALSE(is_quantized(plan, find(layer, "router_gemm")));
  EXPECT_TRUE(is_quantized(plan, find(layer, "proj_a_gemm")));
}

}  // namespace
}  // namespace orrery::plan
