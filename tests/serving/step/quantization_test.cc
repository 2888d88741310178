// SPDX-License-Identifier: Apache-2.0
#include "serving/step/quantization.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "serving/step/pass_operators.h"
#include "serving/step/step_cost.h"

namespace orrery::step {
namespace {

using ::testing::HasSubstr;

/// Reads the quantization of a configuration with four layers.
Result<std::optional<Precision>> read(const std::string& quantization) {
  return parse_config(R"({"num_hidden_layers": 4, "quantization_config": )" + quantization + "}",
                      "config.json", ConfigSyntax::json)
      .and_then(quantization_of);
}
Precision format(const std::string& quantization) {
  auto found = read(quantization);
  EXPECT_TRUE(found.has_value()) << (found ? "" : found.error().to_string());
  return found && *found ? **found : Precision();
}
std::string mistakes(const std::string& quantization) {
  auto found = read(quantization);
  return found ? "" : found.error().to_string();
}

TEST(Quantization, OfEveryMethodIsItsFormats) {
  using graph::DataType;
  const Precision block = format(
      R"({"quant_method": "fp8", "activation_scheme": "dynamic", "fmt": "e4m3",
          "weight_block_size": [128, 128]})");  // DeepSeek-V3
  EXPECT_EQ(block.weights, DataType::fp8);
  EXPECT_EQ(block.activations, DataType::fp8);
  EXPECT_TRUE(block.block_scaled);
  EXPECT_DOUBLE_EQ(block.scale_bits, 32.0 / (128 * 128));
  EXPECT_EQ(block.kv, DataType::bf16);

  const Precision awq = format(
      R"({"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": true,
          "version": "gemm", "modules_to_not_convert": null})");
  EXPECT_EQ(awq.weights, DataType::fp4);
  EXPECT_EQ(awq.activations, DataType::bf16);
  EXPECT_DOUBLE_EQ(awq.scale_bits, (16.0 + 4) / 128);

  const Precision w8a8 = format(
      R"({"quant_method": "compressed-tensors", "format": "int-quantized", "ignore": ["lm_head"],
          "kv_cache_scheme": {"num_bits": 8, "type": "float", "strategy": "tensor"},
          "config_groups": {"group_0": {"targets": ["Linear"], "output_activations": null,
            "weights": {"num_bits": 8, "type": "int", "strategy": "channel", "group_size": null},
            "input_activations": {"num_bits": 8, "type": "int", "strategy": "token"}}}})");
  EXPECT_EQ(w8a8.weights, DataType::fp8);
  EXPECT_EQ(w8a8.activations, DataType::fp8);
  EXPECT_EQ(w8a8.kv, DataType::fp8);
  EXPECT_EQ(w8a8.narrow, Narrow::all);
  EXPECT_EQ(w8a8.scale_bits, 0);

  const Precision w8a16 = format(
      R"({"quant_method": "compressed-tensors", "config_groups": {"group_0": {
            "weights": {"num_bits": 8, "strategy": "channel"}, "input_activations": null}}})");
  EXPECT_EQ(w8a16.weights, DataType::fp8);
  EXPECT_EQ(w8a16.activations, DataType::bf16);

  const Precision nvfp4 = format(
      R"({"quant_method": "modelopt", "quant_algo": "NVFP4", "kv_cache_quant_algo": "FP8"})");
  EXPECT_EQ(nvfp4.activations, DataType::fp4);
  EXPECT_EQ(nvfp4.kv, DataType::fp8);
  EXPECT_DOUBLE_EQ(nvfp4.scale_bits, 0.5);

  const Precision mxfp4 = format(R"({"quant_method": "mxfp4"})");  // gpt-oss
  EXPECT_EQ(mxfp4.narrow, Narrow::experts);
  EXPECT_DOUBLE_EQ(mxfp4.scale_bits, 0.25);
}

TEST(Quantization, AttentionIsLeftOutIfEveryLayerSaysSo) {
  const auto narrow = [](const std::string& names) {
    return format(R"({"quant_method": "fp8", "modules_to_not_convert": [)" + names + "]}").narrow;
  };
  EXPECT_EQ(narrow(R"("lm_head")"), Narrow::all);
  EXPECT_EQ(narrow(R"("re:.*self_attn.*")"), Narrow::mlp);
  EXPECT_EQ(narrow(R"("model.layers.0.self_attn")"), Narrow::all);  // one of four
  EXPECT_EQ(narrow(R"("model.layers.0.self_attn.q_proj", "model.layers.0.self_attn.k_proj",
                      "model.layers.1.self_attn", "model.layers.2.self_attn",
                      "model.layers.3.self_attn")"),
            Narrow::mlp);
  // NVIDIA's DeepSeek-R1-0528-FP4-v2 leaves out attention's projections but that of its output.
  EXPECT_EQ(narrow(R"("*self_attn.q_a_proj*", "*self_attn.kv_b_proj*")"), Narrow::outputs);
  EXPECT_EQ(narrow(R"("*self_attn.q_a_proj*", "*self_attn.o_proj*")"), Narrow::mlp);
  EXPECT_EQ(narrow(R"("re:.*self_attn.*", "re:.*shared_experts.*")"), Narrow::experts);
}

TEST(Quantization, OutputsAreMlpsAndTheOutputProjectionOfAttention) {
  const auto narrow = [](graph::OperatorRole role, Narrow which) {
    zoo::ModelOperator op;
    op.role = role;
    op.has_weight = true;
    return is_narrow(op, which);
  };
  using Role = graph::OperatorRole;
  EXPECT_TRUE(narrow(Role::project_out, Narrow::outputs));
  EXPECT_TRUE(narrow(Role::down, Narrow::outputs));
  EXPECT_FALSE(narrow(Role::query_down, Narrow::outputs));
  EXPECT_FALSE(narrow(Role::project_out, Narrow::mlp));
  EXPECT_FALSE(narrow(Role::down, Narrow::experts));
}

TEST(Quantization, MistakesAreNamed) {
  EXPECT_FALSE(read("null")->has_value());
  EXPECT_THAT(mistakes(R"({"quant_method": "gptqq"})"), HasSubstr("did you mean 'gptq'"));
  EXPECT_THAT(mistakes(R"({"quant_method": "gptq", "bits": 3})"), HasSubstr("4 or 8 bits"));
  EXPECT_THAT(mistakes(R"({"quant_method": "awq"})"), HasSubstr("bits"));
  EXPECT_THAT(mistakes(R"({"quant_method": "fp8", "weight_block_size": [128]})"),
              HasSubstr("rows and columns"));
  EXPECT_THAT(mistakes(R"({"quant_method": "fp8", "group_sise": 3})"), HasSubstr("group_sise"));
  EXPECT_THAT(mistakes(R"({"quant_method": "compressed-tensors", "config_groups": {
                "a": {"weights": {"num_bits": 8}}, "b": {"weights": {"num_bits": 4}}}})"),
              HasSubstr("groups of one format"));
  EXPECT_THAT(mistakes("{}"), HasSubstr("quant_method"));
  EXPECT_THAT(mistakes("[1]"), HasSubstr("quantization_config"));
}

TEST(Quantization, WhatIsLeftOutStaysWideInMemory) {
  // gpt-oss-20b: 24 layers of 32 experts of 3 x 2880 x 2880, 19.1e9 of its 20.9e9 parameters.
  const zoo::Model model = zoo::load_model("gpt-oss-20b").value();
  const machine::Machine machine = machine::load_machine("dgx-h100").value();
  StepOptions options;
  const auto weights = [&] {
    return static_cast<double>(
        StepCost::make(model, machine, options)->weights_per_device().value());
  };
  const double wide = weights();
  options.precision.weights = graph::DataType::fp4;
  options.precision.narrow = Narrow::experts;
  options.precision.scale_bits = 0.25;
  // Matrices 2880 x 2880 lie as 3072 x 2944 in 4.25 bits.
  const double experts = 24.0 * 32 * 3;
  const double saved = experts * (2880.0 * 2880 * 16 - 3072.0 * 2944 * 4.25) / 8;
  EXPECT_NEAR((wide - weights()) / saved, 1, 0.01);
}

TEST(Quantization, ModelsThatSeeHaveItWithTheirText) {
  // Kimi-K2.5: routed experts in 4 bits and a scale of 16 for 32 of them; all else in 16 bits.
  const auto file = zoo::load_model_file("moonshotai/Kimi-K2.5").value();
  const Precision precision = quantization_of(file.node).value().value();
  EXPECT_EQ(precision.weights, graph::DataType::fp4);
  EXPECT_EQ(precision.activations, graph::DataType::bf16);
  EXPECT_EQ(precision.narrow, Narrow::experts);
  EXPECT_EQ(precision.scale_bits, 0.5);
}

TEST(Quantization, ExpertsOfDeepSeekV4HaveFourBitsBesideMatricesOfEight) {
  const auto file = zoo::load_model_file("deepseek-v4-flash").value();
  const Precision precision = quantization_of(file.node).value().value();
  EXPECT_EQ(precision.weights, graph::DataType::fp8);
  EXPECT_TRUE(precision.experts_fp4);
  StepOptions options{.degrees = {.tp = 4}};
  const auto weights = [&](bool narrow) {
    options.precision = precision;
    options.precision.experts_fp4 = narrow;
    return StepCost::make(zoo::load_model("deepseek-v4-flash").value(),
                          machine::load_machine("dgx-b200").value(), options)
        .value()
        .weights_per_device();
  };
  // A quarter of 43 layers of 256 experts of 3 x 4,096 x 2,048, of 4 + 8 / 32 bits instead of 8 and
  // a scale of 32 for 128 x 128.
  const double experts = 43.0 * 256 * 3 * 4096 * 2048 / 4;
  EXPECT_NEAR(static_cast<double>((weights(false) - weights(true)).value()),
              experts * (8 + 32.0 / (128 * 128) - 4.25) / 8, 100.0 * 43);
}

TEST(Quantization, ModelOptNeedsNoMethod) {
  // As hf_quant_config.json says it under `quantization`.
  const Precision fp8 = format(R"({"quant_algo": "FP8", "kv_cache_quant_algo": "FP8",
                                   "exclude_modules": ["lm_head"]})");
  EXPECT_EQ(fp8.weights, graph::DataType::fp8);
  EXPECT_EQ(fp8.activations, graph::DataType::fp8);
  EXPECT_EQ(fp8.kv, graph::DataType::fp8);
  const Precision fp4 = format(R"({"quant_algo": "NVFP4", "kv_cache_quant_algo": "NVFP4"})");
  EXPECT_EQ(fp4.weights, graph::DataType::fp4);
  EXPECT_EQ(fp4.kv, graph::DataType::fp4);
  EXPECT_EQ(fp4.scale_bits, 0.5);  // 8 bits for each 16 weights
  const Precision mixed = format(R"({"quant_algo": "W4A8_AWQ", "group_size": 128})");
  EXPECT_EQ(mixed.weights, graph::DataType::fp4);
  EXPECT_EQ(mixed.activations, graph::DataType::fp8);
}

TEST(Quantization, TargetsOfGroupsSayWhichMatricesAreNarrow) {
  const auto narrow = [](const std::string& targets) {
    return format(R"({"quant_method": "compressed-tensors", "config_groups": {"group_0": {
        "targets": )" +
                  targets + R"(, "weights": {"num_bits": 4, "type": "int", "group_size": 32,
        "strategy": "group"}}}})")
        .narrow;
  };
  EXPECT_EQ(narrow(R"(["Linear"])"), Narrow::all);
  EXPECT_EQ(narrow(R"(["re:.*mlp.experts.*"])"), Narrow::experts);
  EXPECT_EQ(narrow(R"(["re:.*mlp.gate_proj", "re:.*mlp.experts.*"])"), Narrow::mlp);
  EXPECT_EQ(narrow(R"(["re:.*self_attn.*", "re:.*mlp.*"])"), Narrow::all);
}

}  // namespace
}  // namespace orrery::step
