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

TEST(Shard, OutputBiasesOfExpertsApartAreAddedExpertByExpert) {
  // 128 experts over 8 ranks: 16 of them with two kernels each forward, five and two backward, and
  // two for all.
  const auto model = zoo::load_model("gpt-oss-120b");
  ASSERT_TRUE(model);
  const auto layer = zoo::layer_operators(*model, {.sequence = 4096, .experts_apart = true});
  const zoo::ModelOperator whole = find(layer, "expert_bias");
  const zoo::ModelOperator part = shard(whole, {.ep = 8});
  EXPECT_EQ(part.forward_kernels, 2 * 16 + 2);
  EXPECT_EQ(part.backward_kernels, 7 * 16 + 2);
  EXPECT_EQ(part.forward_bytes, whole.forward_bytes);  // as many rows come as go
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

TEST(Shard, ModulesOfTransformersHaveKernelsOfTheirOwn) {
  // 2,048 tokens of 2,048 elements of 2 bytes, x = 8 MiB. A norm passes 36 bytes an element in 8
  // kernels (18 x); a query, key and value product are two launches more, and backward adds three
  // gradients of their input (two sums of 3 x) in the place of a concatenation.
  const auto model = zoo::load_model("llama-3.2-1b");
  ASSERT_TRUE(model.has_value());
  const Plan plain{.sequence = 2048, .autograd = Autograd::pytorch};
  Plan modules = plain;
  modules.autograd = Autograd::hugging_face;
  const auto layer = [&](const Plan& plan) {
    return block_graphs(*model, plan)[kFirstLayerBlock].operators;
  };
  const Bytes x(2048LL * 2048 * 2);
  const auto of_kind = [](const std::vector<zoo::ModelOperator>& operators, auto selects) {
    return *std::find_if(operators.begin(), operators.end(), selects);
  };
  const auto norm = [](const auto& op) { return op.kind == graph::OperatorKind::norm; };
  const auto split = [](const auto& op) { return op.role == graph::OperatorRole::split_qkv; };
  EXPECT_EQ(of_kind(layer(plain), norm).forward_bytes, 2 * x);
  EXPECT_EQ(of_kind(layer(modules), norm).forward_bytes, 18 * x);
  EXPECT_EQ(of_kind(layer(modules), norm).forward_kernels, 8);
  // 46 x in 16 kernels, and the sum of the residual branch's gradient: 3 x in one.
  EXPECT_EQ(of_kind(layer(modules), norm).backward_bytes, 49 * x);
  EXPECT_EQ(of_kind(layer(modules), norm).backward_kernels, 17);
  EXPECT_EQ(of_kind(layer(modules), split).forward_kernels, 2);
  EXPECT_EQ(of_kind(layer(modules), split).backward_bytes, 6 * x);
}

TEST(Shard, ModulesOfTorchtitanRotateAsComplexNumbersAndRepeatKeys) {
  // 2,048 tokens of 2,048 elements of 2 bytes, x = 8 MiB; 32 heads share 8 of keys: queries and
  // keys are 1.25 x. Rotation in fp32 passes them 10 times, copies of keys and values for every
  // head twice: 2 (0.25 + 1) x = 2 passes. 12 passes are 15 x, compiled or not. Sums of the
  // gradients of one input: 2 x 3 x eager, 2 more readings compiled; of gate and up (4 x each) one.
  const auto model = zoo::load_model("llama-3.2-1b");
  ASSERT_TRUE(model.has_value());
  const Bytes x(2048LL * 2048 * 2);
  for (const bool compiled : {false, true}) {
    const Plan plan{.sequence = 2048,
                    .autograd = Autograd::pytorch,
                    .fused_kernels = compiled,
                    .framework = "torchtitan"};
    const auto operators = block_graphs(*model, plan)[kFirstLayerBlock].operators;
    const auto of_role = [&](graph::OperatorRole role) {
      return *std::find_if(operators.begin(), operators.end(),
                           [role](const auto& op) { return op.role == role; });
    };
    const zoo::ModelOperator rotation = of_role(graph::OperatorRole::rotate);
    EXPECT_EQ(rotation.forward_bytes, 15 * x);
    EXPECT_EQ(rotation.backward_bytes, 15 * x);
    EXPECT_EQ(rotation.forward_kernels, 8);
    const zoo::ModelOperator split = of_role(graph::OperatorRole::split_qkv);
    EXPECT_EQ(split.forward_kernels, 2);
    EXPECT_EQ(split.backward_bytes, (compiled ? 2 : 6) * x);
    // Backward of SwiGLU: 5 passes of 4 x fused; 9 eager, without a concatenation.
    EXPECT_EQ(of_role(graph::OperatorRole::activation).backward_bytes, (compiled ? 21 : 39) * x);
  }
}

TEST(Shard, EagerNormsOfPyTorchAreOneKernelOrItsOperators) {
  // 2,048 tokens of 2,048 elements of 2 bytes, x = 8 MiB: one kernel reads and writes, 2 x;
  // float(), pow, mean, +, rsqrt, *, type_as and * pass 36 bytes an element in 8 kernels, 18 x. A
  // compiler makes one of them.
  const auto model = zoo::load_model("llama-3.2-1b");
  ASSERT_TRUE(model.has_value());
  const auto norm_of = [&](const Plan& plan) {
    const auto operators = block_graphs(*model, plan)[kFirstLayerBlock].operators;
    return *std::find_if(operators.begin(), operators.end(),
                         [](const auto& op) { return op.kind == graph::OperatorKind::norm; });
  };
  Plan plan{.sequence = 2048,
            .autograd = Autograd::pytorch,
            .fused_kernels = false,
            .persistent_norm = false};
  const Bytes x(2048LL * 2048 * 2);
  EXPECT_EQ(norm_of(plan).forward_bytes, 18 * x);
  EXPECT_EQ(norm_of(plan).forward_kernels, 8);
  plan.persistent_norm = true;
  EXPECT_EQ(norm_of(plan).forward_bytes, 2 * x);
  plan.persistent_norm = false;
  plan.fused_kernels = true;
  EXPECT_EQ(norm_of(plan).forward_bytes, 2 * x);
}

}  // namespace
}  // namespace orrery::plan
