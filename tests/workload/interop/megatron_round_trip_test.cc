// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "plans.h"

namespace orrery::testing {
namespace {

void choose_pipeline(plan::Plan& plan) {
  if (plan.pp == 1) {
    return;
  }
  plan.chunks = one_of<std::int64_t>({1, 2, 3});
  plan.schedule = plan.chunks > 1 ? plan::Schedule::interleaved : plan::Schedule::one_f_one_b;
  plan.overlap_p2p = plan.chunks > 1 && coin();
  if (coin()) {
    for (std::int64_t part = 0; part < plan.pp * plan.chunks; ++part) {
      plan.stage_layers += (part > 0 ? "," : "") + std::to_string(*rc::gen::inRange(0, 5));
    }
  }
  if (plan.tp > 1 && !plan.sequence_parallel) {
    plan.pipeline_send =
        one_of<plan::PipelineSend>({plan::PipelineSend::whole, plan::PipelineSend::scatter_gather});
  }
}

void choose_tensor(plan::Plan& plan) {
  plan.cp = one_of<std::int64_t>({1, 4});
  plan.order = one_of<std::string>({"tp-cp-dp-pp", "tp-cp-pp-dp"});
  if (plan.tp > 1) {
    plan.sequence_parallel = coin();
    plan.overlap_tp = coin();
    plan.tp_chunks = plan.sequence_parallel && coin() ? plan.tp : 1;
  }
  if (plan.cp > 1) {
    plan.cp_exchange = *rc::gen::elementOf(std::vector<plan::ContextExchange>{
        plan::ContextExchange::p2p, plan::ContextExchange::all_gather, plan::ContextExchange::a2a,
        plan::ContextExchange::a2a_p2p});
    plan.cp_a2a = plan.cp_exchange == plan::ContextExchange::a2a_p2p ? 2 : 1;
  }
}

void choose_experts(plan::Plan& plan) {
  plan.etp = one_of<std::int64_t>({0, 1});
  const std::int64_t ranks = plan.dp * plan.cp * (plan.etp == 1 ? plan.tp : 1);
  plan.ep = ranks % 2 == 0 ? one_of<std::int64_t>({1, 2}) : 1;  // divides tp x cp x dp / etp
  plan.moe_dispatch =
      one_of<plan::MoeDispatch>({plan::MoeDispatch::all_to_all, plan::MoeDispatch::all_gather,
                                 plan::MoeDispatch::hierarchical});
  plan.moe_capacity = one_of<double>({0, 1.25});
  plan.overlap_ep = coin()   ? plan::OverlapExperts::shared
                    : coin() ? plan::OverlapExperts::microbatch
                             : plan::OverlapExperts::off;
}

void choose_memory(plan::Plan& plan) {
  plan.recompute = one_of<plan::Recompute>(
      {plan::Recompute::none, plan::Recompute::selective, plan::Recompute::full});
  if (plan.recompute == plan::Recompute::full) {
    plan.recompute_layers = one_of<std::int64_t>({0, 2});
  } else {
    plan.recompute_modules = one_of<std::string>({"", "layernorm", "layernorm,mlp", "moe_act"});
  }
  plan.offload_optimizer = one_of<plan::Offload>({plan::Offload::none, plan::Offload::cpu});
}

void choose_data(plan::Plan& plan) {
  plan.zero = one_of<std::int64_t>({0, 1, 2, 3});
  const std::int64_t half = plan.dp * plan.cp / 2;
  if (plan.zero > 0 && half > 1 && coin()) {
    plan.shard_params = plan.zero == 3 ? half : 0;
    plan.shard_grads = plan.zero >= 2 ? half : 0;
    plan.shard_optimizer = plan.zero >= 2 && coin() ? 0 : half;
  }
  plan.compute_type = one_of<graph::DataType>(
      {graph::DataType::bf16, graph::DataType::fp16, graph::DataType::fp32});
  plan.grad_type = plan.grad_reduce_type = coin() ? plan.compute_type : graph::DataType::fp32;
  plan.master_type = one_of<graph::DataType>({graph::DataType::fp32, graph::DataType::fp16});
  plan.moment_type =
      one_of<graph::DataType>({graph::DataType::fp32, graph::DataType::bf16, graph::DataType::fp8});
  plan.overlap_grad_reduce = coin();
  plan.overlap_param_gather = plan.zero > 0 && coin();
  if (plan.overlap_grad_reduce && plan.zero < 3) {
    plan.bucket = graph::bytes_of(plan.grad_type, one_of<std::int64_t>({1'000'000, 40'000'000}));
  }
  plan.fused_grad_accumulation = coin();
}

/// Every field that the arguments state, at random.
plan::Plan any_plan() {
  plan::Plan plan = any_degrees();
  plan.sequence = 4096;
  choose_tensor(plan);
  choose_pipeline(plan);
  choose_experts(plan);
  choose_memory(plan);
  choose_data(plan);
  plan.quantization = one_of<plan::Quantization>(
      {plan::Quantization::none, plan::Quantization::fp8_delayed, plan::Quantization::fp8_current,
       plan::Quantization::fp8_block, plan::Quantization::mxfp8, plan::Quantization::nvfp4});
  plan.quantized_params = plan.quantization != plan::Quantization::none && coin();
  if (plan.quantization > plan::Quantization::fp8_delayed && coin()) {
    plan.unquantized_start_layers = one_of<std::int64_t>({0, 1, 2});
    plan.unquantized_end_layers = one_of<std::int64_t>({0, 1, 3});
  }
  plan.attention =
      one_of<zoo::AttentionKernel>({zoo::AttentionKernel::unfused, zoo::AttentionKernel::flash});
  plan.fused_kernels = coin();
  plan.persistent_norm = coin();
  plan.fused_cross_entropy = coin();
  plan.vocab_multiple = one_of<std::int64_t>({1, 128});
  plan.host_sync = coin();
  return plan;
}

RC_GTEST_PROP(MegatronRoundTrip, APlanThatTheArgumentsStateSurvivesThem, ()) {
  const plan::Plan plan = any_plan();
  const auto exported = interop::export_megatron(plan, {.devices_per_node = 8});
  RC_ASSERT(exported.has_value());
  RC_LOG() << exported->text;
  RC_ASSERT(exported->lost == std::vector<interop::Remark>{});
  const auto again =
      interop::import_megatron(words_of(exported->text), {.devices = plan.devices()});
  RC_ASSERT(again.has_value());
  RC_ASSERT(interop::canonical(again->plan) == interop::canonical(plan));
}

/// An imported line can be exported without loss: the second line says what the first one did.
RC_GTEST_PROP(MegatronRoundTrip, AnImportedLineIsExportedWhole, ()) {
  const auto first = interop::export_megatron(any_plan(), {});
  RC_ASSERT(first.has_value());
  const auto plan = interop::import_megatron(words_of(first->text), {});
  RC_ASSERT(plan.has_value());
  const auto second = interop::export_megatron(plan->plan, {});
  RC_ASSERT(second.has_value());
  RC_ASSERT(second->text == first->text);
}

/// One plan field each that no argument states.
TEST(MegatronRoundTrip, AFieldWithoutArgumentIsNamedAsLost) {
  const auto lost_of = [](const plan::Plan& plan) {
    std::vector<std::string> fields;
    const auto exported = interop::export_megatron(plan, {}).value();
    for (const interop::Remark& remark : exported.lost) {
      fields.push_back(remark.about);
    }
    return fields;
  };
  const plan::Plan plain{.tp = 2, .pp = 2, .dp = 4, .global_batch = 4, .sequence = 2048};
  plan::Plan plan = plain;
  EXPECT_TRUE(lost_of(plan).empty());
  plan.schedule = plan::Schedule::gpipe;
  plan.host_dispatch = Time(30'000'000);
  plan.moe_imbalance = 1.5;
  plan.documents = "1024,1024";
  plan.dp_algorithm = collective::CollectiveAlgorithm::ring;
  EXPECT_THAT(lost_of(plan),
              ::testing::UnorderedElementsAre("schedule", "host_dispatch", "moe_imbalance",
                                              "documents", "dp_algorithm"));
  plan = plain;
  plan.grad_type = graph::DataType::bf16;  // the arguments have one type for buffer and network
  EXPECT_THAT(lost_of(plan), ::testing::ElementsAre("grad_reduce_type"));
}

TEST(MegatronRoundTrip, LossesStandInTheTextAsComments) {
  plan::Plan plan{.dp = 2, .global_batch = 2, .sequence = 2048};
  plan.batch_kernels = 7;
  const auto exported = interop::export_megatron(plan, {});
  ASSERT_TRUE(exported.has_value());
  EXPECT_THAT(exported->text,
              ::testing::StartsWith("# Not stated by Megatron-LM's arguments:\n"
                                    "#   batch_kernels: the plan has 7; read back it is 0\n"
                                    "torchrun --nproc-per-node 2 pretrain_gpt.py \\\n"));
}

TEST(MegatronRoundTrip, APlanThatIsNoneIsRefused) {
  EXPECT_FALSE(interop::export_megatron({.tp = 0}, {}).has_value());
  EXPECT_FALSE(interop::export_megatron({.dp = 3, .global_batch = 4}, {}).has_value());
  EXPECT_FALSE(interop::export_megatron({.tp = 1 << 20, .pp = 1 << 20}, {}).has_value());
}

}  // namespace
}  // namespace orrery::testing
