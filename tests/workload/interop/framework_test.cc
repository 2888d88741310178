// SPDX-License-Identifier: Apache-2.0
/// Configurations in YAML, in the shape in which their programs write or document them.
#include "workload/interop/framework.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "frameworks.h"

namespace orrery::interop {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(Framework, AccelerateStatesDevicesAndSharding) {
  const plan::Plan first = plan_of("accelerate",
                                   "distributed_type: FSDP\nfsdp_config:\n"
                                   "  fsdp_sharding_strategy: FULL_SHARD\n"
                                   "  fsdp_offload_params: false\nmixed_precision: bf16\n"
                                   "num_machines: 2\nnum_processes: 16\nuse_cpu: false\n");
  EXPECT_EQ(first.dp, 16);
  EXPECT_EQ(first.zero, 3);
  EXPECT_TRUE(first.reshard_after_forward);
  EXPECT_EQ(first.grad_reduce_type, graph::DataType::bf16);
  // Version 2: tp 2 of 4 devices leaves dp 2; parameters stay gathered for the backward pass.
  const plan::Plan second = plan_of("accelerate",
                                    "distributed_type: FSDP\nfsdp_config:\n  fsdp_version: 2\n"
                                    "  fsdp_reshard_after_forward: false\n"
                                    "  fsdp_activation_checkpointing: true\nnum_processes: 4\n"
                                    "mixed_precision: 'no'\nparallelism_config:\n"
                                    "  parallelism_config_tp_size: 2\n");
  EXPECT_EQ(second.tp, 2);
  EXPECT_EQ(second.dp, 2);
  EXPECT_FALSE(second.reshard_after_forward);
  EXPECT_EQ(second.recompute, plan::Recompute::full);
  // DeepSpeed: 8 replicas x 4 steps.
  const plan::Plan third = plan_of("accelerate",
                                   "distributed_type: DEEPSPEED\ndeepspeed_config:\n"
                                   "  gradient_accumulation_steps: 4\n  zero_stage: 2\n"
                                   "  offload_optimizer_device: cpu\nnum_processes: 8\n");
  EXPECT_EQ(third.zero, 2);
  EXPECT_EQ(third.global_batch, 32);
  EXPECT_EQ(third.offload_optimizer, plan::Offload::cpu);
  // TRL's alst_ulysses_4gpu.yaml: two parts of a sequence, two shards.
  const plan::Plan fourth = plan_of(
      "accelerate",
      "distributed_type: DEEPSPEED\ndeepspeed_config:\n  zero_stage: 3\n"
      "  seq_parallel_communication_data_type: bf16\nnum_processes: 4\nparallelism_config:\n"
      "  parallelism_config_dp_shard_size: 2\n  parallelism_config_cp_size: 2\n"
      "  parallelism_config_cp_backend: deepspeed\n"
      "  parallelism_config_cp_seq_length_is_variable: true\n"
      "  parallelism_config_cp_attn_implementation: flash_attention_2\n");
  EXPECT_EQ(fourth.cp, 2);
  EXPECT_EQ(fourth.dp, 2);
}

TEST(Framework, FineTunersStateBatchesAndAdapters) {
  // 8 sequences x 2 steps x 8 devices.
  const plan::Plan trainer = plan_of("trainer",
                                     "per_device_train_batch_size: 8\n"
                                     "gradient_accumulation_steps: 2\nmax_seq_length: 2048\n"
                                     "bf16: true\ngradient_checkpointing: true\n"
                                     "fsdp: \"full_shard auto_wrap\"\nlearning_rate: 2.0e-05\n",
                                     {.devices = 8});
  EXPECT_EQ(trainer.global_batch, 128);
  EXPECT_EQ(trainer.sequence, 2048);
  EXPECT_EQ(trainer.zero, 3);
  const plan::Plan axolotl = plan_of("axolotl",
                                     "base_model: a/b\nload_in_4bit: true\nadapter: qlora\n"
                                     "lora_r: 32\nlora_target_linear: true\nsequence_len: 4096\n"
                                     "micro_batch_size: 2\ngradient_accumulation_steps: 4\n"
                                     "optimizer: adamw_bnb_8bit\nbf16: auto\nwandb_project:\n",
                                     {.devices = 4});
  EXPECT_EQ(axolotl.lora_rank, 32);
  EXPECT_EQ(axolotl.frozen_type, plan::FrozenType::nf4);
  EXPECT_EQ(axolotl.optimizer, plan::Optimizer::adamw_8bit);
  EXPECT_EQ(axolotl.global_batch, 32);
  // LLaMA-Factory recomputes every layer unless told not to.
  const std::string factory =
      "finetuning_type: lora\nlora_rank: 8\nlora_target: all\ncutoff_len: 2048\nbf16: true\n"
      "per_device_train_batch_size: 1\ngradient_accumulation_steps: 8\n";
  EXPECT_EQ(plan_of("llama-factory", factory, {.devices = 8}).recompute, plan::Recompute::full);
  EXPECT_EQ(
      plan_of("llama-factory", factory + "disable_gradient_checkpointing: true\n", {.devices = 8})
          .recompute,
      plan::Recompute::none);
}

TEST(Framework, MeshesOfMaxTextMultiply) {
  // fsdp 4 x 8 = 32 devices, 6 sequences each.
  const plan::Plan plan = plan_of("maxtext",
                                  "per_device_batch_size: 6\nmax_target_length: 4096\n"
                                  "dcn_fsdp_parallelism: 4\nici_fsdp_parallelism: 8\n"
                                  "ici_tensor_parallelism: 1\ndcn_data_parallelism: 1\n"
                                  "ici_data_parallelism: 1\nremat_policy: full\nsteps: 30\n");
  EXPECT_EQ(plan.dp, 32);
  EXPECT_EQ(plan.zero, 3);
  EXPECT_EQ(plan.microbatch, 6);
  EXPECT_EQ(plan.global_batch, 192);
}

TEST(Framework, ReferencesOfLlmFoundry) {
  const plan::Plan plan = plan_of("llm-foundry",
                                  "variables: {n: 2048}\nmax_seq_len: ${variables.n}\n"
                                  "global_train_batch_size: 1024\nprecision: amp_bf16\n"
                                  "device_train_microbatch_size: 16\nfsdp_config:\n"
                                  "  sharding_strategy: SHARD_GRAD_OP\n  mixed_precision: PURE\n",
                                  {.devices = 8});
  EXPECT_EQ(plan.sequence, 2048);
  EXPECT_EQ(plan.global_batch, 1024);
  EXPECT_FALSE(plan.reshard_after_forward);
  EXPECT_EQ(plan.grad_reduce_type, graph::DataType::bf16);
}

TEST(Framework, NemoAndPrimusHoldMegatronsArguments) {
  const std::string nemo =
      "trainer: {devices: 8, num_nodes: 2, precision: bf16}\nmodel:\n  micro_batch_size: 4\n"
      "  global_batch_size: 128\n  tensor_model_parallel_size: 2\n"
      "  pipeline_model_parallel_size: 2\n  encoder_seq_length: 4096\n"
      "  max_position_embeddings: ${.encoder_seq_length}\n  sequence_parallel: True\n"
      "  activations_checkpoint_granularity: selective\n"
      "  optim: {name: distributed_fused_adam, overlap_grad_sync: True}\n"
      "  data: {seq_length: '${..encoder_seq_length}'}\n";
  const plan::Plan plan = plan_of("nemo", nemo);
  EXPECT_EQ(plan.dp, 4);  // 16 / (2 x 2)
  EXPECT_EQ(plan.zero, 1);
  EXPECT_EQ(plan.recompute, plan::Recompute::selective);
  const auto wider = import_yaml("nemo", nemo, {}, {"trainer.num_nodes=4", "~model.data"});
  EXPECT_EQ(wider.value().plan.dp, 8);
  EXPECT_THAT(
      import_yaml("nemo", nemo, {}, {"model.tensor_model_paralel_size=4"}).error().to_string(),
      HasSubstr("did you mean '--tensor-model-parallel-size'"));
  const plan::Plan primus = plan_of("primus",
                                    "modules:\n  pre_trainer:\n    framework: megatron\n"
                                    "    overrides:\n      micro_batch_size: 2\n"
                                    "      global_batch_size: 128\n"
                                    "      seq_length: ${PRIMUS_SEQ:8192}\n      bf16: true\n"
                                    "      use_distributed_optimizer: true\n",
                                    {.devices = 8});
  EXPECT_EQ(primus.sequence, 8192);
  EXPECT_EQ(primus.zero, 1);
}

TEST(Framework, ADeepSpeedFilesNameStatesItsStage) {
  const std::string job = "per_device_train_batch_size: 1\nbf16: true\nmax_seq_length: 64\n";
  const auto stage = [&](const std::string& file) {
    return plan_of("trainer", job + "deepspeed: " + file + "\n", {.devices = 8});
  };
  // LLaMA-Factory's, axolotl's and TRL's names.
  EXPECT_EQ(stage("examples/deepspeed/ds_z3_config.json").zero, 3);
  EXPECT_EQ(stage("deepspeed_configs/zero1.json").zero, 1);
  EXPECT_EQ(stage("z2.json").zero, 2);
  EXPECT_EQ(stage("ds_z2_offload_config.json").offload_optimizer, plan::Offload::cpu);
  EXPECT_THAT(import_yaml("trainer", job + "deepspeed: zero3.json\n", {.devices = 8})
                  ->remarks.at(0)
                  .sentence,
              HasSubstr("ZeRO stage 3, as its name says"));
  // Primus: a switch of 1.
  EXPECT_TRUE(plan_of("primus",
                      "modules:\n  pre_trainer:\n    overrides:\n      sequence_parallel: 1\n"
                      "      micro_batch_size: 1\n      seq_length: 64\n"
                      "      tensor_model_parallel_size: 2\n",
                      {.devices = 8})
                  .sequence_parallel);
}

TEST(Framework, UnknownKeysAreRemarksUnlessTheyMayMatter) {
  const std::string job = "micro_batch_size: 1\nsequence_len: 500_000\n";
  const auto imported = import_yaml("axolotl",
                                    job +
                                        "wandb_new_thing: x\nexperts_of_wood: oak\n"
                                        "activation_offloading: legacy\nexpert_parallel_size: 4\n",
                                    {.devices = 8});
  ASSERT_TRUE(imported) << imported.error().to_string();
  EXPECT_EQ(imported->plan.sequence, 500'000);  // a number of YAML 1.1
  EXPECT_EQ(imported->plan.ep, 4);
  EXPECT_EQ(imported->plan.offload_activations, 1);
  ASSERT_EQ(imported->remarks.size(), 1U);  // wandb_* is known
  EXPECT_EQ(imported->remarks.front().about, "experts_of_wood");
  EXPECT_THAT(
      import_yaml("axolotl", job + "ring_parallel_ways: 4\n", {.devices = 8}).error().to_string(),
      HasSubstr("c.yaml:3: ring_parallel_ways: unknown key"));
}

TEST(Framework, LlamaFactorysOwnOptimizersAndTypes) {
  const std::string job = "per_device_train_batch_size: 1\ncutoff_len: 1024\nbf16: true\n";
  const plan::Plan muon =
      plan_of("llama-factory", job + "use_muon: true\nuse_fast_tokenizer: true\n", {.devices = 8});
  EXPECT_EQ(muon.optimizer, plan::Optimizer::muon);
  const plan::Plan fp8 =
      plan_of("llama-factory",
              job + "fp8: true\nfp8_backend: torchao\nfp8_enable_fsdp_float8_all_gather: true\n",
              {.devices = 8});
  EXPECT_EQ(fp8.quantization, plan::Quantization::fp8_current);
  EXPECT_TRUE(fp8.quantized_params);
  // Workers of Ray are the devices.
  EXPECT_EQ(plan_of("llama-factory", job + "ray_num_workers: 4\nplacement_strategy: PACK\n").dp, 4);
}

TEST(Framework, LlmFoundryReducesAMicrobatchBeyondADevicesShare) {
  // 8 sequences on 4 devices: 2 each, not 4.
  const plan::Plan plan = plan_of("llm-foundry",
                                  "global_train_batch_size: 8\ndevice_train_microbatch_size: 4\n"
                                  "max_seq_len: 2048\nprecision: amp_bf16\nmetadata: {a: b}\n",
                                  {.devices = 4});
  EXPECT_EQ(plan.microbatch, 2);
  EXPECT_EQ(plan.global_batch, 8);
  // 8 devices share a sequence: an eighth each. 32 devices / 8 = dp 4.
  const std::string shared =
      "global_train_batch_size: 4\ndevice_train_microbatch_size: 0.125\nmax_seq_len: 131072\n"
      "model: {converted_config_overrides: {attn_config: {seq_parallel_world_size: 8}}}\n";
  EXPECT_EQ(plan_of("llm-foundry", shared, {.devices = 32}).cp, 8);
  EXPECT_EQ(plan_of("llm-foundry", shared, {.devices = 32}).microbatch, 1);
  EXPECT_THAT(
      import_yaml("llm-foundry", "global_train_batch_size: 8\ndevice_train_microbatch_size: 0.5\n",
                  {.devices = 4})
          .error()
          .to_string(),
      HasSubstr("c.yaml:2: device_train_microbatch_size: found '0.5'"));
}

/// Keys of the model's shape pass without a word, one that a reader of plans would need does not.
TEST(Framework, AMisspeltKeyBelowAnIgnoredOneIsAMistake) {
  const std::string job =
      "global_train_batch_size: 8\ndevice_train_microbatch_size: 1\nmax_seq_len: 2048\n"
      "fsdp_config: {activation_checkpointing_reentrant: false, sync_module_states: true}\n"
      "model: {name: mpt_causal_lm, d_model: 2048, attn_config: {attn_type: x, alibi: true";
  EXPECT_EQ(plan_of("llm-foundry", job + "}}\n", {.devices = 8}).dp, 8);
  EXPECT_THAT(
      import_yaml("llm-foundry", job + ", atn_impl: flash}}\n", {.devices = 8}).error().to_string(),
      ::testing::AllOf(HasSubstr("model.attn_config.atn_impl"),
                       HasSubstr("did you mean 'model.attn_config.attn_impl'")));
}

TEST(Framework, AListIsNoNumber) {
  EXPECT_THAT(
      import_yaml("axolotl", "micro_batch_size: [2, 4]\nsequence_len: 512\n", {.devices = 8})
          .error()
          .to_string(),
      HasSubstr("micro_batch_size: found '4', expected one number, not a list"));
}

TEST(Framework, PrimusHoldsConfigurationsOfOneOfItsPrograms) {
  EXPECT_THAT(import_yaml("primus",
                          "modules:\n  pre_trainer:\n    framework: torchtitn\n    overrides:\n"
                          "      training: {local_batch_size: 1}\n")
                  .error()
                  .to_string(),
              HasSubstr("modules.pre_trainer.framework: found 'torchtitn', expected megatron"));
}

TEST(Framework, PrimusHoldsConfigurationsOfSeveralPrograms) {
  const auto primus = [](const std::string& framework, const std::string& overrides) {
    return plan_of("primus",
                   "modules:\n  pre_trainer:\n    framework: " + framework +
                       "\n    config: pre_trainer.yaml\n    overrides:\n" + overrides,
                   {.devices = 16});
  };
  // MaxText: 12 sequences a device; experts over a node of 8.
  const plan::Plan maxtext = primus("maxtext",
                                    "      dcn_data_parallelism: -1\n"
                                    "      ici_expert_parallelism: -1\n"
                                    "      max_target_length: 4096\n"
                                    "      per_device_batch_size: 12\n");
  EXPECT_EQ(maxtext.dp, 16);
  EXPECT_EQ(maxtext.ep, 8);
  EXPECT_EQ(maxtext.global_batch, 12 * 16);
  const plan::Plan titan = primus("torchtitan",
                                  "      sink_level: null\n      primus_turbo: {enable: true}\n"
                                  "      training: {local_batch_size: 2, seq_len: 8192}\n"
                                  "      parallelism: {tensor_parallel_degree: 2}\n"
                                  "      activation_checkpoint: {mode: full}\n");
  EXPECT_EQ(titan.tp, 2);
  EXPECT_EQ(titan.dp, 8);
  EXPECT_EQ(titan.sequence, 8192);
}

TEST(Framework, MaxTextsRepeatsOfAPipelineAreNoted) {
  const auto imported = import_yaml("maxtext",
                                    "dcn_data_parallelism: -1\nmax_target_length: 4096\n"
                                    "per_device_batch_size: 1\nnum_pipeline_repeats: 2\n",
                                    {.devices = 8});
  ASSERT_TRUE(imported) << imported.error().to_string();
  EXPECT_THAT(imported->remarks, ::testing::Contains(::testing::Field(&interop::Remark::about,
                                                                      "num_pipeline_repeats")));
}

TEST(Framework, MaxTextFillsAFileFromItsBase) {
  // base.yml: fsdp -1 over 8 devices, 12 sequences of 2048 tokens each, every layer recomputed.
  const auto imported =
      import_yaml("maxtext", "base_config: base.yml\nmodel_name: llama3.1-8b\n", {.devices = 8});
  ASSERT_TRUE(imported) << imported.error().to_string();
  const plan::Plan& plan = imported->plan;
  EXPECT_EQ(plan.zero, 3);
  EXPECT_EQ(plan.global_batch, 96);
  EXPECT_EQ(plan.sequence, 2048);
  EXPECT_EQ(plan.recompute, plan::Recompute::full);
  EXPECT_EQ(plan.cp_exchange, plan::ContextExchange::all_gather);
  ASSERT_EQ(imported->remarks.size(), 3U);
  EXPECT_EQ(imported->remarks.back().about, "ici_fsdp_parallelism");
  // As base.yml itself states it.
  EXPECT_EQ(plan_of("maxtext",
                    "per_device_batch_size: 1\ndcn_data_parallelism: -1\n"
                    "dcn_fsdp_parallelism: 1\nici_data_parallelism: 1\n"
                    "ici_fsdp_parallelism: -1\nici_fsdp_transpose_parallelism: 1\n",
                    {.devices = 8})
                .zero,
            3);
  // All of 8 devices hold copies: fsdp is what they leave, 1.
  const std::string copies = "per_device_batch_size: 1\nici_data_parallelism: 8\n";
  EXPECT_EQ(plan_of("maxtext", copies, {.devices = 8}).zero, 0);
  EXPECT_EQ(
      plan_of("maxtext", copies + "context_parallel_strategy: ring\n", {.devices = 8}).cp_exchange,
      plan::ContextExchange::p2p);
}

TEST(Framework, MistakesOfAMaxTextMeshAreToldAtOnce) {
  const auto wrong = import_yaml("maxtext",
                                 "per_device_batch_size: 0\nici_fsdp_parallelism: -1\n"
                                 "ici_tensor_parallelism: -1\nmax_target_length: 0.0\n",
                                 {.devices = 8});
  EXPECT_EQ(wrong.error().to_string(),
            "c.yaml:1: per_device_batch_size: found '0', expected a number above 0\n"
            "c.yaml:3: ici_tensor_parallelism: found '-1', expected a degree above 0: "
            "ici_fsdp_parallelism takes what the others leave\n"
            "c.yaml:4: max_target_length: found '0.0', expected a number above 0");
}

TEST(Framework, KeysOfMaxTextsOtherPartsHaveNoWeight) {
  const auto imported = import_yaml(
      "maxtext",
      "per_device_batch_size: 1\nmax_target_length: 8\nici_fsdp_parallelism: -1\n"
      "encoder_layers_for_audio: 2\nnum_attention_heads_for_vit: 16\nkv_quant_dtype: int8\n"
      "act_quantization_calibration_method: absmax\nici_autoregressive_parallelism: 1\n",
      {.devices = 8});
  ASSERT_TRUE(imported) << imported.error().to_string();
  EXPECT_TRUE(imported->remarks.empty());
}

TEST(Framework, MistakesNameFileLineAndKey) {
  const auto wrong =
      import_yaml("axolotl", "micro_batch_size: x\nsequence_length: 4\ntf33: false\n");
  EXPECT_THAT(wrong.error().to_string(),
              AllOf(HasSubstr("c.yaml:1: micro_batch_size: found 'x', expected a number above 0"),
                    HasSubstr("c.yaml:2: sequence_length: unknown key (did you mean"),
                    HasSubstr("--devices: missing")));
  EXPECT_THAT(import_yaml("trainer", "deepspeed: ds.json\n").error().to_string(),
              HasSubstr("orrery import deepspeed"));
  EXPECT_EQ(launch_words("A: 1\nMODEL_ARGS: --bf16\n", "m.yaml").error().to_string(),
            "m.yaml:2: MODEL_ARGS: found '--bf16', expected a map of flags");
  EXPECT_THAT(import_yaml("nemo", "a: ${b}\n").error().to_string(),
              HasSubstr("c.yaml:1: a: found '${b}'"));
}

}  // namespace
}  // namespace orrery::interop
