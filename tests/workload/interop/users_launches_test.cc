// SPDX-License-Identifier: Apache-2.0
/// Launches as users have them, re-typed to what they are made of.
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
