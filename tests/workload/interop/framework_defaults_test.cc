// SPDX-License-Identifier: Apache-2.0
/// Programs have names and defaults of their own, which plans have to follow.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "frameworks.h"

namespace orrery::interop {
namespace {

using ::testing::HasSubstr;

TEST(Framework, AMaxTextMeshHasNoDegreeOfNothing) {
  // MaxText's product of degrees is the number of devices: 0 is none.
  const auto wrong = import_yaml("maxtext",
                                 "max_target_length: 8\nper_device_batch_size: 0.3\n"
                                 "ici_tensor_parallelism: 0\ndcn_data_parallelism: 0\n",
                                 {.devices = 8});
  EXPECT_EQ(wrong.error().to_string(),
            "c.yaml:3: ici_tensor_parallelism: found '0', expected 1 or more, or -1: what the "
            "others leave\n"
            "c.yaml:4: dcn_data_parallelism: found '0', expected 1 or more, or -1: what the "
            "others leave\n"
            "c.yaml:2: per_device_batch_size: found '0.3', expected whole sequences for each of "
            "the dp = 8 replicas");
}

TEST(Framework, OptimizersByTheirNames) {
  const auto of = [](const std::string& name) {
    return import_yaml("trainer", "per_device_train_batch_size: 1\noptim: " + name + "\n",
                       {.devices = 8});
  };
  EXPECT_EQ(of("paged_adamw_8bit")->plan.optimizer, plan::Optimizer::adamw_8bit);
  EXPECT_EQ(of("paged_adamw_32bit")->plan.optimizer, plan::Optimizer::adam);
  EXPECT_EQ(of("lion_8bit")->plan.optimizer, plan::Optimizer::lion);
  EXPECT_EQ(of("adamw_torch")->plan.optimizer, plan::Optimizer::adam_foreach);
  for (const char* other : {"galore_adamw", "apollo_adamw", "ademamix", "rmsprop"}) {
    const auto imported = of(other);
    ASSERT_TRUE(imported) << imported.error().to_string();
    EXPECT_EQ(imported->plan.optimizer, plan::Optimizer::adam) << other;
    EXPECT_THAT(imported->remarks, ::testing::Contains(::testing::Field(
                                       &interop::Remark::sentence,
                                       HasSubstr(std::string(other) + ": counted as Adam"))));
  }
}

TEST(Framework, WhatIsNoConfigurationIsNoPlan) {
  for (const FrameworkFormat& format : framework_formats()) {
    const std::string name(format.name);
    for (const char* text : {"just some words\n", "- a\n- b\n", "{}\n"}) {
      EXPECT_FALSE(import_yaml(name, text, {.devices = 8})) << name << ": " << text;
    }
    EXPECT_FALSE(import_yaml(name, "services: {web: {image: nginx}}\n", {.devices = 8})) << name;
  }
  EXPECT_EQ(import_yaml("axolotl", "hello world\n", {.devices = 8}).error().to_string(),
            "c.yaml:1: found 'hello world', expected a map of keys");
}

TEST(Framework, AdaptersHaveTheModulesThatAreNamed) {
  const auto targets = [](const std::string& list) {
    return import_yaml("axolotl",
                       "adapter: lora\nmicro_batch_size: 1\nlora_target_modules: " + list + "\n",
                       {.devices = 8});
  };
  EXPECT_EQ(targets("[q_proj, k_proj, v_proj, o_proj]")->plan.lora_targets,
            "attention_qkv,attention_dense");
  EXPECT_EQ(targets("[o_proj]")->plan.lora_targets, "attention_dense");
  EXPECT_EQ(targets("[gate_proj, up_proj, down_proj]")->plan.lora_targets, "mlp_fc1,mlp_fc2");
  EXPECT_EQ(targets("all-linear")->plan.lora_targets, "all");
  EXPECT_EQ(targets("[q_proj, foo]")->remarks.size(), 1U);
  EXPECT_EQ(plan_of("llama-factory",
                    "finetuning_type: lora\nper_device_train_batch_size: 1\n"
                    "lora_target: q_proj,v_proj\nlora_dropout: 0.1\n",
                    {.devices = 8})
                .lora_targets,
            "attention_qkv");
}

TEST(Framework, AdaptersHaveTheDefaultsOfTheirPrograms) {
  const std::string batch = "per_device_train_batch_size: 1\n";
  const plan::Plan factory = plan_of(
      "llama-factory", batch + "finetuning_type: lora\nlora_dropout: 0.1\n", {.devices = 8});
  EXPECT_EQ(factory.lora_rank, 8);
  EXPECT_DOUBLE_EQ(factory.lora_dropout, 0.1);
  const plan::Plan trl = plan_of("trainer", batch + "use_peft: true\n", {.devices = 8});
  EXPECT_EQ(trl.lora_rank, 16);  // ModelConfig of TRL
  EXPECT_DOUBLE_EQ(trl.lora_dropout, 0.05);
  const plan::Plan plain =
      plan_of("trainer", batch + "use_peft: true\nlora_dropout: 0.0\n", {.devices = 8});
  EXPECT_EQ(plain.lora_dropout, 0);
  EXPECT_FALSE(import_yaml("llama-factory", batch + "finetuning_type: lora\nlora_dropout: 2\n",
                           {.devices = 8}));
}

TEST(Framework, FrozenWeightsHaveTheTypeThatTheirNameSays) {
  const auto of = [](const std::string& name) {
    return import_yaml("axolotl", "adapter: lora\nmicro_batch_size: 1\nbase_model: " + name + "\n",
                       {.devices = 8});
  };
  EXPECT_EQ(of("nvidia/Qwen3-30B-A3B-NVFP4")->plan.frozen_type, plan::FrozenType::int4);
  EXPECT_EQ(of("nvidia/Qwen3-30B-A3B-NVFP4")->remarks.size(), 1U);
  EXPECT_EQ(of("unsloth/Qwen3-14B-bnb-4bit")->plan.frozen_type, plan::FrozenType::nf4);
  EXPECT_EQ(of("Qwen/Qwen3-8B")->plan.frozen_type, plan::FrozenType::compute_type);
}

TEST(Framework, ExpertsOnTheHostsAreRefused) {
  EXPECT_FALSE(import_yaml("llama-factory", "per_device_train_batch_size: 1\nuse_kt: true\n",
                           {.devices = 8}));
  EXPECT_TRUE(import_yaml("llama-factory", "per_device_train_batch_size: 1\nuse_kt: false\n",
                          {.devices = 8}));
}

}  // namespace
}  // namespace orrery::interop
