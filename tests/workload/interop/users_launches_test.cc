// SPDX-License-Identifier: Apache-2.0
/// Launches as users have them, re-typed to what they are made of.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "workload/interop/interop.h"

namespace orrery::interop {
namespace {

TEST(UsersLaunches, TextsOfAMapAreReadAsTheShellReadsThem) {
  // Megatron-LM's functional tests: lists in brackets, a layout with its signs escaped. Two stages
  // of three layers and one: the first part has 3, 2 and m count with the last.
  const auto words = launch_words(
      "MODEL_ARGS:\n  --micro-batch-size: 1\n  --seq-length: 64\n  --num-layers: 5\n"
      "  --pipeline-model-parallel-size: 2\n"
      "  --pipeline-model-parallel-layout: Et*3\\\\|\\\\(t\\\\)*2mL\n"
      "  --recompute-granularity: selective\n"
      "  --recompute-modules: \"[layernorm moe_act]\"\n",
      "model_config.yaml");
  const auto imported = import_megatron(words.value(), {.devices = 2});
  ASSERT_TRUE(imported.has_value()) << imported.error().to_string();
  EXPECT_EQ(imported->plan.stage_layers, "3,2");
  EXPECT_EQ(imported->plan.recompute_modules, "layernorm,moe_act");
}

/// The import of a line with these flags, on 64 devices.
Result<Imported> launched(const std::string& flags) {
  const auto words = launch_words("--micro-batch-size 1 --seq-length 4096 --bf16 " + flags, "line");
  return import_megatron(words.value(), {.devices = 64});
}

/// 2 layers of 12 x 128^2 + 13 x 128, the table of 256 x 128, 64 positions and the last norm:
/// 437,760 parameters, half of them on a rank of tp 2, a quarter of these in each of 4 buckets, in
/// fp32.
TEST(UsersLaunches, BucketsByTheirNumberHoldAPartOfTheModel) {
  const std::string model =
      "--num-layers 2 --hidden-size 128 --num-attention-heads 4 --vocab-size 256 "
      "--max-position-embeddings 64 --tensor-model-parallel-size 2 --ddp-num-buckets 4 ";
  const auto imported = launched(model + "--overlap-grad-reduce");
  ASSERT_TRUE(imported.has_value()) << imported.error().to_string();
  EXPECT_EQ(imported->plan.bucket, Bytes(437'760 / 2 / 4 * 4));
  EXPECT_EQ(launched(model)->plan.bucket, Bytes(0));  // without overlap there is one
  const auto shapeless = launched("--overlap-grad-reduce --ddp-num-buckets 4");
  ASSERT_FALSE(shapeless.has_value());
  EXPECT_THAT(shapeless.error().to_string(), testing::HasSubstr("required to describe the model"));
  EXPECT_FALSE(launched(model + "--overlap-grad-reduce --ddp-bucket-size 9"));
}

/// Megatron-Dion: 8 ranks of data in 2 copies of the states.
TEST(UsersLaunches, DionHasCopiesOfItsStates) {
  const auto imported = launched(
      "--optimizer dion --dion-momentum 0.95 --dion-rank-fraction 0.25 --dion-beta1 0.9 "
      "--dion-scalar-optimizer adamw --use-distributed-optimizer "
      "--fully-shard-model-parallel-size 4 --replicate-model-parallel-size 2");
  ASSERT_TRUE(imported.has_value()) << imported.error().to_string();
  EXPECT_EQ(imported->plan.shard_optimizer, imported->plan.dp / 2);
  EXPECT_EQ(imported->remarks.size(), 2U);  // counted as Adam; what is sharded over
}

TEST(UsersLaunches, MuonIsNoAdam) {
  EXPECT_EQ(launched("--optimizer muon --muon-momentum 0.9")->plan.optimizer,
            plan::Optimizer::muon);
  EXPECT_EQ(launched("--optimizer muon")->plan.zero, 0);
  const plan::Plan spread = launched("--optimizer dist_muon")->plan;
  EXPECT_EQ(spread.optimizer, plan::Optimizer::muon);
  EXPECT_EQ(spread.zero, 1);
  EXPECT_EQ(launched("--optimizer sgd")->plan.optimizer, plan::Optimizer::sgd);
  EXPECT_EQ(launched("--optimizer soap")->remarks.size(), 1U);  // counted as Adam
  for (const plan::Optimizer optimizer :
       {plan::Optimizer::muon, plan::Optimizer::lion, plan::Optimizer::sgd}) {
    for (const std::int64_t zero : {0, 1}) {
      plan::Plan plan = spread;
      plan.optimizer = optimizer;
      plan.zero = zero;
      const auto exported = export_megatron(plan, {});
      ASSERT_TRUE(exported) << exported.error().to_string();
      EXPECT_TRUE(exported->lost.empty()) << name_of(optimizer) << zero;
      const auto deepspeed = export_deepspeed(plan, {});
      ASSERT_TRUE(deepspeed) << deepspeed.error().to_string();
      EXPECT_EQ(import_deepspeed(*parse_config(deepspeed->text, "ds.json", ConfigSyntax::json),
                                 {.devices = 64})
                    ->plan.optimizer,
                optimizer);
    }
  }
}

/// ms-swift's own program under torchrun has its defaults, too.
TEST(UsersLaunches, SwiftUnderTorchrun) {
  const auto words = launch_words(
      "torchrun --nproc_per_node 8 swift/cli/_megatron/sft.py --model m "
      "--tensor_model_parallel_size "
      "2 --max_length 64 --cached_dataset x --freeze_llm false --strict false --system 'Be "
      "helpful.' "
      "--tuner_type lora --target_modules linear_qkv linear_proj --overlap-grad-reduce "
      "--overlap-param-gather",
      "run.sh");
  const auto imported = import_megatron(words.value(), {});
  ASSERT_TRUE(imported.has_value()) << imported.error().to_string();
  EXPECT_EQ(imported->plan.zero, 1);
  EXPECT_EQ(imported->plan.global_batch, 16);
  EXPECT_EQ(imported->plan.lora_rank, 8);
  EXPECT_EQ(imported->plan.lora_targets, "attention_qkv,attention_dense");
}

TEST(UsersLaunches, MissingDevicesMakeNoOtherMistake) {
  const auto words = launch_words(
      "python pretrain_gpt.py --micro-batch-size 1 --seq-length 64 --num-experts 8 "
      "--expert-model-parallel-size 8",
      "run.sh");
  EXPECT_EQ(import_megatron(words.value(), {}).error().mistakes.size(), 1U);
}

TEST(UsersLaunches, AdaptersOfSwift) {
  const auto words = launch_words(
      "NPROC_PER_NODE=2 \\\nmegatron sft --train_type lora --lora_rank 16 --lora_alpha 32 "
      "--target_modules all-linear --max_length 64",
      "run.sh");
  const auto imported = import_megatron(words.value(), {});
  ASSERT_TRUE(imported.has_value()) << imported.error().to_string();
  EXPECT_EQ(imported->plan.lora_rank, 16);
}

}  // namespace
}  // namespace orrery::interop
