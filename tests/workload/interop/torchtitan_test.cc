// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "plans.h"
#include "workload/interop/toml.h"

namespace orrery::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

plan::Plan torchtitan_plan_of(const std::string& toml, const interop::ImportOptions& options = {}) {
  const auto imported = interop::import_torchtitan(
      "[activation_checkpoint]\nmode = 'none'\n" + toml, "job.toml", options);
  EXPECT_TRUE(imported.has_value()) << (imported ? "" : imported.error().to_string());
  return imported ? imported->plan : plan::Plan();
}
std::string torchtitan_mistakes_of(const std::string& toml,
                                   const interop::ImportOptions& options = {}) {
  const auto imported = interop::import_torchtitan(toml, "job.toml", options);
  return imported ? "" : imported.error().to_string();
}

TEST(Toml, TablesKeysAndValues) {
  const auto node = interop::parse_toml(
      "top = 1\n[a.b] # comment\nx.y = 'it''s'\n\"q k\" = \"a\\\"\\n\"\nn = 1_000\n"
      "list = [ [1, 2],\n  ['z'], ] # over lines\n[a]\nc = true\r\n",
      "f");
  // 'it''s' is a string and then something else: one mistake.
  ASSERT_FALSE(node.has_value());
  EXPECT_THAT(node.error().to_string(), HasSubstr("f:3"));
  const auto good = interop::parse_toml(
      "top = 1\n[a.b] # comment\nx.y = 'its'\n\"q k\" = \"a\\\"\\n\"\nn = 1_000\n"
      "list = [ [1, 2],\n  ['z'], ] # over lines\n[a]\nc = true\r\n",
      "f");
  ASSERT_TRUE(good.has_value()) << good.error().to_string();
  const ConfigNode* b = good->find("a")->find("b");
  EXPECT_EQ(good->find("top")->text, "1");
  EXPECT_EQ(b->find("x")->find("y")->text, "its");
  EXPECT_EQ(b->find("x")->find("y")->path, "a.b.x.y");
  EXPECT_EQ(b->find("q k")->text, "a\"\n");
  EXPECT_EQ(b->find("n")->text, "1000");
  EXPECT_EQ(b->find("list")->items[0].items[1].text, "2");
  EXPECT_TRUE(b->find("list")->items[1].items[0].quoted);
  EXPECT_EQ(good->find("a")->find("c")->line, 9);
}

TEST(Toml, WhatIsNotReadIsAMistakeWithItsLine) {
  for (const std::string wrong :
       {"a = 1979-05-27", "a = \"\"\"x\"\"\"", "a = {b = 1}", "[[a]]", "a = 1\na = 2", "= 1",
        "a = ", "a = [1, 2", "a = 'x", "[a]\n[a]", "a = 1 2", "a = 1\n[a.b]"}) {
    const auto node = interop::parse_toml("\n" + wrong, "f");
    ASSERT_FALSE(node.has_value()) << wrong;
    EXPECT_THAT(node.error().to_string(), ::testing::StartsWith("f:")) << wrong;
  }
}

TEST(Torchtitan, LeftoverRanksShard) {
  // 64 devices / (tp 4 x replicate 2) = 8 shard ranks; dp = 16.
  const plan::Plan plan = torchtitan_plan_of(
      "[parallelism]\ntensor_parallel_degree = 4\ndata_parallel_replicate_degree = 2\n"
      "[training]\nlocal_batch_size = 3\nseq_len = 8192\n",
      {.devices = 64});
  EXPECT_EQ(plan.dp, 16);
  EXPECT_EQ(plan.zero, 3);
  EXPECT_EQ(plan.shard_params, 8);
  EXPECT_EQ(plan.shard_optimizer, 8);
  EXPECT_EQ(plan.global_batch, 48);
  EXPECT_TRUE(plan.sequence_parallel);
  EXPECT_THAT(torchtitan_mistakes_of("[parallelism]\ntensor_parallel_degree = 4\n", {.devices = 6}),
              HasSubstr("data_parallel_shard_degree"));
}

TEST(Torchtitan, ContextParallelRanksShardToo) {
  const plan::Plan plan = torchtitan_plan_of(
      "[parallelism]\ndata_parallel_shard_degree = 1\ncontext_parallel_degree = 4\n");
  EXPECT_EQ(plan.zero, 3);
  EXPECT_EQ(plan.dp, 1);
  EXPECT_EQ(plan.cp_exchange, plan::ContextExchange::all_gather);
  const plan::Plan ddp = torchtitan_plan_of(
      "[parallelism]\ndata_parallel_shard_degree = 1\ndata_parallel_replicate_degree = 4\n");
  EXPECT_EQ(ddp.zero, 0);
  EXPECT_EQ(ddp.bucket, Bytes(100 << 20));
}

TEST(Torchtitan, EmbeddingAndHeadCountAsLayersInTheDefaultSplit) {
  const zoo::Model model = zoo::load_model("llama-3-8b").value();  // 32 layers
  const std::string job =
      "[parallelism]\ndata_parallel_shard_degree = 1\npipeline_parallel_degree = 4\n"
      "[training]\nlocal_batch_size = 8\n";
  // 32 + 1 + 1 = 34 over 4 stages: 9, 9, 8, 8; less one at both ends.
  EXPECT_EQ(torchtitan_plan_of(job, {.model = &model}).stage_layers, "8,9,8,7");
  EXPECT_THAT(torchtitan_mistakes_of(job), HasSubstr("--model"));
  const plan::Plan looped = torchtitan_plan_of(
      "[parallelism]\ndata_parallel_shard_degree = 1\npipeline_parallel_degree = 2\n"
      "pipeline_parallel_schedule = 'Interleaved1F1B'\nmodule_fqns_per_model_part = [\n"
      "['tok_embeddings', 'layers.0'], ['layers.1'], ['layers.2', 'layers.3'], ['norm']]\n"
      "[training]\nlocal_batch_size = 8\n");
  EXPECT_EQ(looped.stage_layers, "1,1,2,0");
  EXPECT_EQ(looped.chunks, 2);
  EXPECT_EQ(looped.microbatch, 1);
}

TEST(Torchtitan, SelectiveOpKeepsEveryOtherGemm) {
  const std::string toml = "[activation_checkpoint]\nmode = \"selective\"\nselective_ac_option = ";
  const auto imported = interop::import_torchtitan(toml + "\"op\"\n", "job.toml", {.devices = 8});
  ASSERT_TRUE(imported) << imported.error().to_string();
  EXPECT_TRUE(imported->remarks.empty());
  EXPECT_EQ(imported->plan.recompute, plan::Recompute::none);
  EXPECT_EQ(imported->plan.recompute_modules, "every_other_gemm");
  const auto exported = interop::export_torchtitan(imported->plan, {});
  ASSERT_TRUE(exported);
  EXPECT_TRUE(exported->lost.empty());
  EXPECT_THAT(exported->text, HasSubstr(toml + "\"op\""));
}

TEST(Torchtitan, DegreesOfReleasesWithoutTheTableParallelism) {
  // 128 devices / (tp 8 x pp 2) = dp 8; 4 microbatches of a local batch of 8.
  const zoo::Model model = zoo::load_model("llama-3-8b").value();
  const plan::Plan plan = torchtitan_plan_of(
      "[training]\nbatch_size = 8\nwarmup_steps = 600\ndata_parallel_shard_degree = -1\n"
      "tensor_parallel_degree = 8\ncompile = true\n[experimental]\n"
      "pipeline_parallel_degree = 2\npipeline_parallel_microbatches = 4\n"
      "enable_async_tensor_parallel = true\n"
      "[model]\nname = \"llama3\"\nnorm_type = \"rmsnorm\"\n",
      {.devices = 128, .model = &model});
  EXPECT_EQ(plan.tp, 8);
  EXPECT_EQ(plan.tp_chunks, 8);
  EXPECT_EQ(plan.pp, 2);
  EXPECT_EQ(plan.dp, 8);
  EXPECT_EQ(plan.microbatch, 2);
  EXPECT_TRUE(plan.fused_kernels);
}

TEST(Torchtitan, ADegreeOfTwoTablesIsAMistake) {
  EXPECT_THAT(torchtitan_mistakes_of("[training]\ntensor_parallel_degree = 2\n"
                                     "[parallelism]\ntensor_parallel_degree = 4\n",
                                     {.devices = 8}),
              HasSubstr("job.toml:2: training.tensor_parallel_degree: unknown field"));
}

TEST(Torchtitan, MistakesAreNamedAtOnce) {
  EXPECT_THAT(torchtitan_mistakes_of("[parallelism]\ntensor_paralel_degree = 8\n"
                                     "pipeline_parallel_schedule = 'DualPipeV'\n"
                                     "[training]\nenable_cpu_offload = true\n[trainig]\n",
                                     {.devices = 8}),
              AllOf(HasSubstr("job.toml:2: parallelism.tensor_paralel_degree: unknown field (did "
                              "you mean 'tensor_parallel_degree'?)"),
                    HasSubstr("found 'DualPipeV'"), HasSubstr("enable_cpu_offload: found 'true'"),
                    HasSubstr("trainig: unknown field (did you mean 'training'?)")));
}

RC_GTEST_PROP(Torchtitan, APlanThatTheConfigurationStatesSurvivesIt, ()) {
  const zoo::Model model = zoo::load_model("gpt3-175b").value();  // 96 layers
  plan::Plan plan = any_degrees();
  plan.cp = one_of<std::int64_t>({1, 2});
  plan.sequence_parallel = plan.tp > 1;
  plan.tp_chunks = coin() ? plan.tp : 1;
  plan.cp_exchange = coin() ? plan::ContextExchange::p2p : plan::ContextExchange::all_gather;
  plan.ep = one_of<std::int64_t>({1, 2});
  plan.etp = plan.ep > 1 ? one_of<std::int64_t>({0, 1}) : 0;
  plan.moe_dispatch = coin() ? plan::MoeDispatch::hierarchical : plan::MoeDispatch::all_to_all;
  plan.zero = plan.cp > 1 || (plan.dp > 1 && coin()) ? 3 : 0;
  if (plan.zero == 3 && plan.dp == 6 && coin()) {
    plan.shard_params = plan.shard_grads = plan.shard_optimizer = 3 * plan.cp;
  }
  plan.bucket = plan.zero == 0 ? Bytes(100 << 20) : Bytes(0);
  plan.overlap_grad_reduce = true;
  plan.overlap_param_gather = plan.zero == 3;
  plan.reshard_after_forward = plan.zero == 0 || coin();
  if (plan.pp > 1) {
    plan.schedule = one_of<plan::Schedule>({plan::Schedule::one_f_one_b, plan::Schedule::gpipe,
                                            plan::Schedule::interleaved, plan::Schedule::zb_v});
    plan.chunks = plan.schedule >= plan::Schedule::interleaved ? 2 : 1;
    plan.pipeline_send = plan::PipelineSend::whole;
  }
  plan.sequence = 2048;
  plan.compute_type = coin() ? graph::DataType::bf16 : graph::DataType::fp32;
  plan.grad_reduce_type = coin() ? graph::DataType::bf16 : graph::DataType::fp32;
  plan.grad_type = plan.master_type = plan.moment_type =
      coin() ? graph::DataType::bf16 : graph::DataType::fp32;
  plan.recompute = coin() ? plan::Recompute::full : plan::Recompute::none;
  plan.attention = zoo::AttentionKernel::flash;
  plan.fused_kernels = coin();
  plan.quantization = one_of<plan::Quantization>(
      {plan::Quantization::none, plan::Quantization::fp8_current, plan::Quantization::mxfp8});
  plan.quantized_params = plan.quantization == plan::Quantization::fp8_current && coin();
  plan.optimizer = coin() ? plan::Optimizer::adam : plan::Optimizer::adam_foreach;
  const auto exported = interop::export_torchtitan(plan, {.model = &model});
  RC_ASSERT(exported.has_value());
  RC_LOG() << exported->text;
  RC_ASSERT(exported->lost == std::vector<interop::Remark>{});
  const auto again = interop::import_torchtitan(exported->text, "job.toml",
                                                {.devices = plan.devices(), .model = &model});
  RC_ASSERT(again.has_value());
  RC_ASSERT(interop::canonical(again->plan) == interop::canonical(plan));
}

}  // namespace
}  // namespace orrery::testing
