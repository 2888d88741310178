// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "plans.h"

namespace orrery::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Result<interop::Imported> import(const std::string& json, interop::ImportOptions options = {}) {
  const auto node = parse_config(json, "ds.json", ConfigSyntax::json);
  return interop::import_deepspeed(node.value(), options);
}
plan::Plan plan_of(const std::string& json, const interop::ImportOptions& options = {}) {
  const auto imported = import(json, options);
  EXPECT_TRUE(imported.has_value()) << (imported ? "" : imported.error().to_string());
  return imported ? imported->plan : plan::Plan();
}
std::string mistakes_of(const std::string& json, const interop::ImportOptions& options = {}) {
  const auto imported = import(json, options);
  return imported ? "" : imported.error().to_string();
}

TEST(DeepSpeed, BatchIsMicroBatchTimesStepsTimesRanks) {
  // 256 = 4 x 8 x dp -> dp = 8.
  const plan::Plan all = plan_of(R"({"train_batch_size": 256, "train_micro_batch_size_per_gpu": 4,
                               "gradient_accumulation_steps": 8})");
  EXPECT_EQ(all.dp, 8);
  EXPECT_EQ(all.global_batch, 256);
  EXPECT_EQ(all.microbatch, 4);
  const plan::Plan without_total =
      plan_of(R"({"train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 2})",
              {.devices = 16});
  EXPECT_EQ(without_total.global_batch, 128);
  // 64 / (16 ranks x 2 steps) = 2.
  EXPECT_EQ(
      plan_of(R"({"train_batch_size": 64, "gradient_accumulation_steps": 2})", {.devices = 16})
          .microbatch,
      2);
  EXPECT_THAT(mistakes_of(R"({"train_batch_size": 256, "train_micro_batch_size_per_gpu": 4,
                              "gradient_accumulation_steps": 8})",
                          {.devices = 16}),
              HasSubstr("ds.json:1: train_batch_size: found '256'"));
}

TEST(DeepSpeed, TensorAndPipelineParallelRanksAreNoDataParallelOnes) {
  const plan::Plan plan = plan_of(R"({"train_micro_batch_size_per_gpu": 1,
                                "tensor_parallel": {"autotp_size": 4}})",
                                  {.devices = 64, .rest = {.pp = 2}});
  EXPECT_EQ(plan.tp, 4);
  EXPECT_EQ(plan.pp, 2);
  EXPECT_EQ(plan.dp, 8);
}

TEST(DeepSpeed, DegreesOfTheFlagsThatAreNoneAreMistakes) {
  const std::string json = R"({"train_batch_size": 64})";
  for (const plan::Plan& rest : {plan::Plan{.tp = 0}, plan::Plan{.pp = 0}, plan::Plan{.cp = -1}}) {
    EXPECT_THAT(mistakes_of(json, {.devices = 8, .rest = rest}), HasSubstr("of 1 or more"));
  }
  EXPECT_THAT(mistakes_of(json, {.rest = {.dp = 0}}), HasSubstr("of 1 or more"));
  EXPECT_THAT(mistakes_of(json, {.devices = 8, .rest = {.pp = 1 << 20, .cp = 1 << 20}}),
              HasSubstr("at most"));
}

TEST(DeepSpeed, BucketsAreCountedInElementsOfTheTypeOnTheNetwork) {
  EXPECT_EQ(plan_of(R"({"bf16": {"enabled": true},
                        "zero_optimization": {"stage": 2, "reduce_bucket_size": 5e8}})")
                .bucket,
            Bytes(1'000'000'000));
  EXPECT_EQ(plan_of(R"({"bf16": {"enabled": true}, "communication_data_type": "fp32",
                        "zero_optimization": {"stage": 2, "reduce_bucket_size": 1000}})")
                .bucket,
            Bytes(4000));
}

TEST(DeepSpeed, OnlyStageThreeOverlapsByItself) {
  EXPECT_FALSE(plan_of(R"({"zero_optimization": {"stage": 2}})").overlap_grad_reduce);
  const plan::Plan three = plan_of(R"({"zero_optimization": {"stage": 3}})");
  EXPECT_TRUE(three.overlap_grad_reduce);
  EXPECT_TRUE(three.overlap_param_gather);
  // Stages 1 and 2 gather the updated parameters after the step.
  EXPECT_FALSE(
      plan_of(R"({"zero_optimization": {"stage": 2, "overlap_comm": true}})").overlap_param_gather);
}

TEST(DeepSpeed, GradientsHaveTheTypeOfTheParametersButForBf16WithoutZero) {
  EXPECT_EQ(plan_of(R"({"bf16": {"enabled": true}})").grad_type, graph::DataType::fp32);
  EXPECT_EQ(plan_of(R"({"bf16": {"enabled": true}, "zero_optimization": {"stage": 1}})").grad_type,
            graph::DataType::bf16);
  EXPECT_EQ(plan_of(R"({"fp16": {"enabled": true}})").grad_type, graph::DataType::fp16);
  EXPECT_EQ(plan_of("{}").compute_type, graph::DataType::fp32);
}

TEST(DeepSpeed, ShardGroupsAndOffload) {
  const plan::Plan mics = plan_of(R"({"zero_optimization": {"stage": 3, "mics_shard_size": 8}})");
  EXPECT_EQ(mics.shard_params, 8);
  EXPECT_EQ(mics.shard_optimizer, 8);
  const auto hpz = import(R"({"zero_optimization": {"stage": 3, "zero_hpz_partition_size": 8}})");
  EXPECT_EQ(hpz->plan.secondary_shard, 8);
  EXPECT_EQ(hpz->plan.shard_params, 0);
  const plan::Plan quantized = plan_of(
      R"({"zero_optimization": {"stage": 3, "zero_quantized_weights": true,
          "zero_quantized_gradients": true}})");
  EXPECT_TRUE(quantized.quantized_gather && quantized.quantized_reduce);
  EXPECT_EQ(plan_of(R"({"zero_optimization": {"offload_optimizer": {"device": "nvme"}}})")
                .offload_optimizer,
            plan::Offload::nvme);
}

TEST(DeepSpeed, AutomaticValuesComeFromTheFlags) {
  const auto imported = import(R"({"train_batch_size": "auto", "bf16": {"enabled": "auto"}})",
                               {.rest = {.dp = 4, .global_batch = 32}});
  EXPECT_EQ(imported->plan.global_batch, 32);
  EXPECT_EQ(imported->remarks.size(), 2U);
}

TEST(DeepSpeed, AnAutomaticTypeIsTheFlagsNotFp32) {
  const std::string both = R"({"bf16": {"enabled": "auto"}, "fp16": {"enabled": "auto"}})";
  EXPECT_EQ(plan_of(both).compute_type, graph::DataType::bf16);
  const auto chosen = import(both, {.rest = {.compute_type = graph::DataType::fp16}});
  EXPECT_EQ(chosen->plan.compute_type, graph::DataType::fp16);
  EXPECT_EQ(plan_of(R"({"bf16": {"enabled": "auto"}, "fp16": {"enabled": true}})").compute_type,
            graph::DataType::fp16);
  EXPECT_EQ(plan_of("{}").compute_type, graph::DataType::fp32);  // DeepSpeed's default
}

TEST(DeepSpeed, WhatAPlanCannotStateAndWhatIsUnknownAreMistakes) {
  EXPECT_THAT(mistakes_of(R"({"zero_optimization": {"stage": 3, "overlap_com": true,
                              "zenflow": {}, "zero_quantized_nontrainable_weights": true},
                              "train_batch": 3})"),
              AllOf(HasSubstr("zero_optimization.overlap_com: unknown field (did you mean "
                              "'overlap_comm'?)"),
                    HasSubstr("zero_optimization.zenflow: found 'a map'"),
                    HasSubstr("zero_quantized_nontrainable_weights: found 'true'"),
                    HasSubstr("train_batch: unknown field")));
  EXPECT_EQ(
      mistakes_of(R"({"steps_per_print": 10, "wall_clock_breakdown": true, "scheduler": {}})"), "");
}

TEST(DeepSpeed, WhatChangesTheResultAndNoPlanStatesIsARemark) {
  const auto imported = import(
      R"({"zero_optimization": {"stage": 3, "offload_param": {"device": "cpu"}},
          "optimizer": {"type": "Lamb"}, "bf16": {"enabled": true, "auto_cast": false}})");
  ASSERT_TRUE(imported.has_value()) << imported.error().to_string();
  std::string about;
  for (const interop::Remark& remark : imported->remarks) {
    about += remark.about + " ";
  }
  EXPECT_THAT(about, AllOf(HasSubstr("offload_param"), HasSubstr("optimizer.type")));
}

TEST(DeepSpeed, KeysAtTheTopThatItDoesNotReadAreRemarks) {
  const auto imported = import(
      R"({"train_micro_batch_size_per_gpu": 1, "my_team": "x",
          "compression_training": {"weight_quantization": {"shared_parameters": {"enabled": false}}},
          "zero_optimization": {"stage": 3, "allgather_sequential": true}})",
      {.devices = 8});
  ASSERT_TRUE(imported) << imported.error().to_string();
  ASSERT_EQ(imported->remarks.size(), 1U);
  EXPECT_THAT(imported->remarks.front().sentence, HasSubstr("my_team"));
  EXPECT_THAT(mistakes_of(R"({"train_micro_batch_size_per_gpu": 1, "compression_training":
                 {"activation_quantization": {"shared_parameters": {"enabled": true}}}})"),
              HasSubstr("compression_training"));
}

TEST(DeepSpeed, UlyssesAutocastAndTheFirstReleasesStage) {
  // 8 devices / (cp 4 x tp 1) = dp 2.
  const plan::Plan ulysses = plan_of(
      R"({"train_micro_batch_size_per_gpu": 1, "sequence_parallel_size": 4,
          "data_parallel_size": 2, "torch_autocast": {"enabled": true, "dtype": "bfloat16",
          "lower_precision_safe_modules": ["torch.nn.Linear"]}})",
      {.devices = 8});
  EXPECT_EQ(ulysses.cp, 4);
  EXPECT_EQ(ulysses.cp_exchange, plan::ContextExchange::a2a);
  EXPECT_EQ(ulysses.dp, 2);
  EXPECT_EQ(ulysses.compute_type, graph::DataType::bf16);
  EXPECT_THAT(mistakes_of(R"({"train_micro_batch_size_per_gpu": 1, "data_parallel_size": 3})",
                          {.devices = 8}),
              HasSubstr("data_parallel_size: found '3', expected the dp of the devices, 8"));
  EXPECT_EQ(plan_of(R"({"train_micro_batch_size_per_gpu": 1, "zero_optimization": true})").zero, 1);
  EXPECT_THAT(mistakes_of(R"({"torch_autocast": {"enabled": true, "dtype": "float32"}})"),
              HasSubstr("torch_autocast.dtype: found 'float32', expected bfloat16 or float16"));
  EXPECT_THAT(mistakes_of(R"({"train_batch_size": "auto"})", {.devices = 3}),
              HasSubstr("Give --microbatch and --global-batch"));
}

TEST(DeepSpeed, CommentsAndLastCommasAreHjsons) {
  EXPECT_EQ(interop::strict_json("{ // a\n\"b\": \"#//\", /* c */ \"d\": [1,], # e\n}"),
            "{     \n\"b\": \"#//\",         \"d\": [1 ]     \n}");
}

RC_GTEST_PROP(DeepSpeed, APlanThatTheConfigurationStatesSurvivesIt, ()) {
  plan::Plan plan = any_degrees();
  plan.zero = one_of<std::int64_t>({0, 1, 2, 3});
  plan.overlap_grad_reduce = coin();
  plan.overlap_param_gather = plan.zero == 3 && plan.overlap_grad_reduce;
  plan.overlap_tp = coin();
  const auto shards = one_of<std::int64_t>({0, 1, 2});
  if (plan.zero == 3 && plan.dp == 6 && shards > 0) {
    plan.shard_params = plan.shard_grads = plan.shard_optimizer = shards == 1 ? 3 : 0;
    plan.secondary_shard = shards == 2 ? 3 : 0;
    plan.quantized_gather = coin();
    plan.quantized_reduce = coin();
  }
  plan.offload_optimizer =
      one_of<plan::Offload>({plan::Offload::none, plan::Offload::cpu, plan::Offload::nvme});
  plan.offload_activations = coin() ? 1 : 0;
  plan.recompute = plan.pp > 1 && coin() ? plan::Recompute::full : plan::Recompute::none;
  plan.compute_type = one_of<graph::DataType>(
      {graph::DataType::bf16, graph::DataType::fp16, graph::DataType::fp32});
  plan.grad_type = one_of<graph::DataType>({graph::DataType::bf16, graph::DataType::fp32});
  plan.grad_reduce_type = one_of<graph::DataType>(
      {graph::DataType::bf16, graph::DataType::fp16, graph::DataType::fp32});
  plan.master_type = coin() ? plan.compute_type : graph::DataType::fp32;
  plan.bucket = graph::bytes_of(plan.grad_reduce_type, *rc::gen::inRange(1, 1'000'000));
  const auto exported = interop::export_deepspeed(plan, {});
  RC_ASSERT(exported.has_value());
  RC_LOG() << exported->text;
  RC_ASSERT(exported->lost == std::vector<interop::Remark>{});
  const auto again = import(exported->text, {.devices = plan.devices()});
  RC_ASSERT(again.has_value());
  RC_ASSERT(interop::canonical(again->plan) == interop::canonical(plan));
}

TEST(DeepSpeed, WhatTheTrainingScriptDecidesIsNamedAsLost) {
  plan::Plan plan{.dp = 2, .cp = 2, .global_batch = 2, .sequence = 4096};
  plan.attention = zoo::AttentionKernel::flash;
  plan.bucket = Bytes(1000);
  plan.grad_reduce_type = graph::DataType::bf16;
  std::vector<std::string> fields;
  const auto exported = interop::export_deepspeed(plan, {}).value();
  for (const interop::Remark& remark : exported.lost) {
    fields.push_back(remark.about);
  }
  EXPECT_THAT(fields, ::testing::UnorderedElementsAre("cp", "sequence", "attention"));
}

}  // namespace
}  // namespace orrery::testing
