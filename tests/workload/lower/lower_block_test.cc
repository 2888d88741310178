// SPDX-License-Identifier: Apache-2.0
#include "workload/lower/lower_block.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "../plan/cases.h"
#include "workload/lower/choose.h"
#include "workload/lower/training_kernels.h"
#include "workload/plan/shard.h"

namespace orrery::lower {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

using Names = std::vector<std::string>;

constexpr Cuts kAll{.tensor = true, .experts = true, .context = true};

/// A block of one rank.
class Lowered {
 public:
  std::vector<zoo::ModelOperator> own;
  Choice choice;
  BlockSteps steps;

  /// Operators that read tensors, or write them, otherwise than they are held over the axis.
  Names that_read(plan::Axis axis) const { return with(&OperatorLayouts::reads, axis); }
  Names that_write(plan::Axis axis) const { return with(&OperatorLayouts::writes, axis); }

 private:
  Names with(Border OperatorLayouts::*border, plan::Axis axis) const {
    Names names;
    for (std::size_t i = 0; i < own.size(); ++i) {
      const std::vector<AxisLayout>& axes = (choice.operators[i].*border).axes;
      if (!axes.empty() && choice.axes[axes.front().axis].axis == axis) {
        names.push_back(own[i].name);
      }
    }
    return names;
  }
};

Lowered lowered(const zoo::Model& model, const plan::Plan& plan,
                plan::BlockKind kind = plan::kFirstLayerBlock) {
  const zoo::ModelGraph block = plan::block_graphs(model, plan)[kind];
  Lowered result;
  for (const zoo::ModelOperator& op : block.operators) {
    result.own.push_back(plan::shard(op, plan));
  }
  result.choice = choose(result.own, block.tensors, model, plan, kAll, plan.tp_chunks);
  result.steps = lower_block(result.own, result.choice, TrainingKernels(plan));
  return result;
}

Names names_of(const std::vector<Step>& steps) {
  Names names;
  for (const Step& step : steps) {
    names.push_back(step.node.name);
  }
  return names;
}

/// Names of collectives alone, with their bytes.
std::vector<std::pair<std::string, std::int64_t>> moved(const std::vector<Step>& steps) {
  std::vector<std::pair<std::string, std::int64_t>> moves;
  for (const Step& step : steps) {
    if (step.node.kind == graph::Node::Kind::collective) {
      moves.emplace_back(step.node.name, step.node.bytes.value());
    }
  }
  return moves;
}

zoo::Model plain_gpt() {
  zoo::Model model = cases::small_gpt(1);
  model.dropout = model.attention_dropout = model.embedding_dropout = 0;
  return model;
}

/// 8 experts of 32, 2 a token.
zoo::Model expert_llama() {
  zoo::Model model = cases::small_llama(1);
  model.experts = 8;
  model.top_k = 2;
  model.expert.ffn = 32;
  zoo::LayerKind kind;
  kind.name = "moe";
  kind.feed_forward = zoo::FeedForwardKind::experts;
  model.kinds = {kind};
  return model;
}

plan::Plan flash(plan::Plan plan) {
  plan.attention = zoo::AttentionKernel::flash;
  return plan;
}

TEST(LowerBlock, OfAGptLayerGathersAndScattersTheStreamAroundItsBranches) {
  // Between branches the tokens lie in shards. Columns take all tokens, rows give partial sums.
  const Lowered layer = lowered(plain_gpt(), flash({.tp = 2, .sequence_parallel = true}));
  EXPECT_THAT(names_of(layer.steps.forward),
              ElementsAre("input_norm", "tp_all_gather", "qkv_gemm", "qkv_split", "flash_attention",
                          "proj_gemm", "tp_reduce_scatter", "attention_bias_residual", "mlp_norm",
                          "tp_all_gather", "fc1_gemm", "bias_gelu", "fc2_gemm", "tp_reduce_scatter",
                          "mlp_bias_residual"));
}

TEST(LowerBlock, OfAGptLayerGathersWhatIsKeptBesideInputGradients) {
  const Lowered layer = lowered(plain_gpt(), flash({.tp = 2, .sequence_parallel = true}));
  EXPECT_THAT(
      names_of(layer.steps.backward),
      ElementsAre("mlp_bias_residual_backward", "mlp_bias_residual_accumulate",
                  "tp_all_gather",  // of the gradient of fc2's result
                  "fc2_gemm_input_gradient", "fc2_gemm_weight_gradient", "fc2_gemm_accumulate",
                  "bias_gelu_backward",
                  "tp_all_gather",  // of fc1's input, for its weight gradient
                  "fc1_gemm_input_gradient", "tp_reduce_scatter", "fc1_gemm_weight_gradient",
                  "fc1_gemm_accumulate", "mlp_norm_backward", "mlp_norm_accumulate",
                  "attention_bias_residual_backward", "attention_bias_residual_accumulate",
                  "tp_all_gather",  // of the gradient of proj's result
                  "proj_gemm_input_gradient", "proj_gemm_weight_gradient", "proj_gemm_accumulate",
                  "flash_attention_backward", "qkv_split_backward",
                  "tp_all_gather",  // of qkv's input
                  "qkv_gemm_input_gradient", "tp_reduce_scatter", "qkv_gemm_weight_gradient",
                  "qkv_gemm_accumulate", "input_norm_backward", "input_norm_accumulate"));
  for (std::size_t i = 0; i < layer.steps.backward.size(); ++i) {
    const Step& step = layer.steps.backward[i];
    const bool kept = step.node.name == "tp_all_gather" && step.reads == Value::none;
    const bool enters = step.node.name == "fc1_gemm_weight_gradient" ||
                        step.node.name == "qkv_gemm_weight_gradient";
    EXPECT_EQ(step.writes == Value::input, kept) << step.node.name;
    EXPECT_EQ(step.reads == Value::input, enters) << step.node.name;
  }
}

Bytes bytes_of(const std::vector<Step>& steps, const std::string& name) {
  const auto step = std::ranges::find(steps, name, [](const Step& one) { return one.node.name; });
  return step == steps.end() ? Bytes(0) : step->node.operators[0].bytes;
}

TEST(LowerBlock, GradientsThatComeAndGoAreHandedOver) {
  // One microbatch whose gradients exist from backward to update: no sum, and in bf16 no kernel at
  // all; in fp32 a cast of each product's, 2 + 4 bytes, where an accumulation would move 2 + 4 + 4.
  const plan::Plan sums = flash({.grad_type = graph::DataType::fp32});
  plan::Plan hands = sums;
  hands.free_gradients = true;
  const Bytes added = bytes_of(lowered(plain_gpt(), sums).steps.backward, "fc1_gemm_accumulate");
  ASSERT_GT(added, Bytes(0));
  const Lowered cast = lowered(plain_gpt(), hands);
  EXPECT_EQ(10 * bytes_of(cast.steps.backward, "fc1_gemm_gradient"), 6 * added);
  EXPECT_EQ(bytes_of(cast.steps.backward, "fc1_gemm_accumulate"), Bytes(0));
  hands.grad_type = graph::DataType::bf16;
  EXPECT_EQ(bytes_of(lowered(plain_gpt(), hands).steps.backward, "fc1_gemm_gradient"), Bytes(0));
  hands.global_batch = 2 * hands.microbatch * hands.dp;
  EXPECT_GT(bytes_of(lowered(plain_gpt(), hands).steps.backward, "fc1_gemm_accumulate"), Bytes(0));
}

TEST(LowerBlock, AutocastCastsWeightsAndHasAWideResidualStream) {
  // A weight's copy, 4 + 2 bytes. A norm of x bytes read and x written: as much again in fp32, and
  // a cast of its result, 3 x; the residual sum reads and writes fp32. Compiled: one x, no kernel.
  plan::Plan plan = flash({.autograd = plan::Autograd::pytorch, .fused_kernels = false});
  const Lowered narrow = lowered(plain_gpt(), plan);
  plan.master_params = plan.autocast = true;
  const Lowered wide = lowered(plain_gpt(), plan);
  const auto forward = [](const Lowered& layer, const char* name) {
    return bytes_of(layer.steps.forward, name);
  };
  const Bytes norm = forward(narrow, "mlp_norm");
  EXPECT_EQ(forward(narrow, "fc1_gemm_cast_weight"), Bytes(0));
  EXPECT_EQ(forward(wide, "fc1_gemm_cast_weight").value(),
            6 * plan::weight_elements(
                    *std::ranges::find(wide.own, "fc1_gemm", &zoo::ModelOperator::name)));
  EXPECT_EQ(2 * forward(wide, "mlp_norm"), 7 * norm);
  EXPECT_EQ(forward(wide, "mlp_bias_residual"), forward(narrow, "mlp_bias_residual") + norm);
  EXPECT_EQ(bytes_of(wide.steps.backward, "mlp_norm_backward"),
            2 * bytes_of(narrow.steps.backward, "mlp_norm_backward") + 3 * norm / 2);
  plan.fused_kernels = true;
  EXPECT_EQ(2 * forward(lowered(plain_gpt(), plan), "mlp_norm"), 3 * norm);
}

TEST(LowerBlock, AnAdapterFollowsTheProductBesideItsGather) {
  // Two pieces. Of qkv, which has an adapter, the frozen product runs beside the gather, and the
  // adapter takes what came; proj's sum is cut as without one.
  plan::Plan plan = flash({.tp = 2, .sequence_parallel = true, .tp_chunks = 2});
  plan.lora_rank = 4;
  plan.lora_targets = "attention";
  const Lowered layer = lowered(plain_gpt(), plan);
  Names attention = names_of(layer.steps.forward);
  attention.resize(static_cast<std::size_t>(
      std::ranges::find(attention, "attention_bias_residual") - attention.begin()));
  EXPECT_THAT(
      attention,
      ElementsAre("input_norm", "tp_all_gather", "tp_all_gather", "qkv_gemm", "qkv_gemm",
                  "qkv_gemm_lora_a", "qkv_gemm_lora_b", "qkv_gemm_lora_sum", "qkv_split",
                  "flash_attention", "proj_gemm_lora_a", "proj_gemm_lora_b", "proj_gemm_lora_sum",
                  "proj_gemm", "tp_reduce_scatter", "proj_gemm", "tp_reduce_scatter"));
}

TEST(LowerBlock, AnAdapterOfAnotherTypeKeepsItsGatherWhole) {
  // The frozen product would gather fp8, its adapter reads 16 bits: one gather for both, no pieces.
  plan::Plan plan = flash({.tp = 2, .sequence_parallel = true, .tp_chunks = 2});
  plan.lora_rank = 4;
  plan.lora_targets = "attention_qkv";
  plan.quantization = plan::Quantization::fp8_delayed;
  plan.frozen_type = plan::FrozenType::fp8;
  const Names names = names_of(lowered(plain_gpt(), plan).steps.forward);
  EXPECT_LT(std::ranges::find(names, "tp_all_gather"), std::ranges::find(names, "qkv_gemm_lora_a"));
  EXPECT_LT(std::ranges::find(names, "qkv_gemm_lora_a"), std::ranges::find(names, "qkv_gemm"));
  EXPECT_EQ(std::ranges::count(names, "qkv_gemm"), 1);
}

TEST(LowerBlock, PyTorchCopiesTheChunksOfRanks) {
  // tp 4: the gathered buffer is 128 x 64 x 2 bytes, a chunk a quarter. Every gather is the copy of
  // the own shard (read and written) and 3 copies from others; every sum 3 copies to others and a
  // kernel that reads 4 chunks and writes one.
  plan::Plan plan = flash({.tp = 4, .sequence_parallel = true, .tp_chunks = 4});
  plan.autograd = plan::Autograd::pytorch;
  const Lowered layer = lowered(plain_gpt(), plan);
  const Names names = names_of(layer.steps.forward);
  const auto qkv = std::ranges::find(names, "tp_shard_copy");
  EXPECT_THAT(Names(qkv, qkv + 8), ElementsAre("tp_shard_copy", "tp_copy", "qkv_gemm", "tp_copy",
                                               "qkv_gemm", "tp_copy", "qkv_gemm", "qkv_gemm"));
  const auto proj = std::ranges::find(names, "proj_gemm");
  EXPECT_THAT(Names(proj, proj + 8),
              ElementsAre("proj_gemm", "tp_copy", "proj_gemm", "tp_copy", "proj_gemm", "tp_copy",
                          "proj_gemm", "tp_partial_sum"));
  const std::int64_t chunk = cases::kBoundary.value() / 4;
  for (const Step& step : layer.steps.forward) {
    if (step.node.name == "tp_copy") {
      EXPECT_EQ(step.node.bytes, Bytes(chunk));
      EXPECT_TRUE(step.node.by_engine);
    } else if (step.node.name == "tp_shard_copy") {
      EXPECT_EQ(step.node.operators.front().bytes, Bytes(2 * chunk));
    } else if (step.node.name == "tp_partial_sum") {
      EXPECT_EQ(step.node.operators.front().bytes, Bytes(5 * chunk));
    }
  }
  plan.tp_chunks = 2;  // pieces that are no rank's are Transformer Engine's
  EXPECT_EQ(std::ranges::count(names_of(lowered(plain_gpt(), plan).steps.forward), "tp_copy"), 0);
}

TEST(LowerBlock, WithoutSequenceParallelismSumsTheStreamAlone) {
  // (R, R): P -> R after rows forward, and of the gradients of what columns read backward.
  const Lowered layer = lowered(plain_gpt(), flash({.tp = 2}));
  const std::pair<std::string, std::int64_t> sum{"tp_all_reduce", cases::kBoundary.value()};
  EXPECT_THAT(moved(layer.steps.forward), ElementsAre(sum, sum));
  EXPECT_THAT(moved(layer.steps.backward), ElementsAre(sum, sum));
}

TEST(LowerBlock, OneRankConvertsNothing) {
  const Lowered layer = lowered(expert_llama(), flash({}));
  EXPECT_THAT(moved(layer.steps.forward), IsEmpty());
  EXPECT_THAT(moved(layer.steps.backward), IsEmpty());
}

TEST(Choose, ColumnsTakeTheStreamInAndRowsGiveSums) {
  const plan::Plan plan{.tp = 2};
  const Lowered layer = lowered(cases::small_gpt(1), plan);
  EXPECT_THAT(layer.that_read(plan::Axis::tp), ElementsAre("qkv_gemm", "fc1_gemm"));
  EXPECT_THAT(layer.that_write(plan::Axis::tp), ElementsAre("proj_gemm", "fc2_gemm"));
  const Lowered embedding = lowered(cases::small_gpt(1), plan, plan::kEmbeddingBlock);
  EXPECT_THAT(embedding.that_read(plan::Axis::tp), IsEmpty());
  EXPECT_THAT(embedding.that_write(plan::Axis::tp), ElementsAre("token_embedding"));
  const Lowered head = lowered(cases::small_gpt(1), plan, plan::kHeadBlock);
  EXPECT_THAT(head.that_read(plan::Axis::tp), ElementsAre("logits_gemm"));
  EXPECT_THAT(head.that_write(plan::Axis::tp), IsEmpty());
}

TEST(Choose, ParallelBranchesAreAddedBeforeTheyAreSummed) {
  zoo::Model model = cases::small_gpt(1);
  model.parallel_residual = true;
  const Lowered two_norms = lowered(model, {.tp = 2});
  EXPECT_THAT(two_norms.that_read(plan::Axis::tp), ElementsAre("qkv_gemm", "fc1_gemm"));
  EXPECT_THAT(two_norms.that_write(plan::Axis::tp), ElementsAre("fc2_gemm"));
  model.shared_norm = true;  // its result is taken in once
  const Lowered one_norm = lowered(model, {.tp = 2});
  EXPECT_THAT(one_norm.that_read(plan::Axis::tp), ElementsAre("qkv_gemm"));
  EXPECT_THAT(one_norm.that_write(plan::Axis::tp), ElementsAre("fc2_gemm"));
}

TEST(Choose, AdaptersTakeTheStreamInFrontOfTheirProductsAndLeavePartialSums) {
  const Lowered layer = lowered(cases::small_llama(1), flash({.tp = 2, .lora_rank = 4}));
  EXPECT_THAT(layer.that_read(plan::Axis::tp), ElementsAre("qkv_gemm_lora_a", "fc1_gemm_lora_a"));
  EXPECT_THAT(layer.that_write(plan::Axis::tp), ElementsAre("proj_gemm", "fc2_gemm"));
}

TEST(Choose, RowsOfTokensGoToTheFirstOperatorOfExpertsAndComeBackFromTheLast) {
  // 128 tokens, 2 rows each of 64 elements of 2 bytes: 32,768 bytes; of all 4 ranks' tokens, each
  // once, 4 x 16,384. On the way back the axes are converted in reverse.
  plan::Plan plan = flash({.dp = 4, .ep = 4, .global_batch = 4});
  Lowered layer = lowered(expert_llama(), plan);
  EXPECT_THAT(layer.that_read(plan::Axis::ep), ElementsAre("expert_fc1_gemm"));
  EXPECT_THAT(layer.that_write(plan::Axis::ep), ElementsAre("expert_fc2_gemm"));
  EXPECT_THAT(moved(layer.steps.forward),
              ElementsAre(std::pair("ep_all_to_all", 32'768), std::pair("ep_all_to_all", 32'768)));
  plan.moe_dispatch = plan::MoeDispatch::all_gather;
  EXPECT_THAT(moved(lowered(expert_llama(), plan).steps.forward),
              ElementsAre(std::pair("ep_all_gather", 4 * 16'384),
                          std::pair("ep_reduce_scatter", 4 * 16'384)));
}

TEST(Choose, AxesOfOneTensorNest) {
  // tp 2 halves the tokens: rows of 16,384 bytes. Both ranks of etp need what comes to either.
  plan::Plan plan = flash({.tp = 2, .dp = 2, .ep = 2, .sequence_parallel = true});
  plan.etp = 2;
  plan.global_batch = 2;
  const auto all = moved(lowered(expert_llama(), plan).steps.forward);
  std::vector<std::pair<std::string, std::int64_t>> experts;
  std::ranges::copy_if(all, std::back_inserter(experts),
                       [](const auto& move) { return !move.first.starts_with("tp_"); });
  EXPECT_THAT(
      experts,
      ElementsAre(std::pair("ep_all_to_all", 16'384), std::pair("etp_all_gather", 32'768),
                  std::pair("etp_reduce_scatter", 32'768), std::pair("ep_all_to_all", 16'384)));
}

TEST(LowerBlock, OnlyAttentionItselfWaitsForKeys) {
  // Two ranks: one step of the ring forward, one backward; the gradients of the sinks, parameters
  // of the kernel, are added up once.
  zoo::Model model = cases::small_llama(1);
  model.sinks = true;
  const Lowered layer = lowered(model, flash({.cp = 2}));
  const auto count = [](const std::vector<Step>& steps, const std::string& name) {
    return std::ranges::count_if(
        steps, [&](const Step& step) { return step.node.name.starts_with(name); });
  };
  EXPECT_EQ(count(layer.steps.forward, "cp_send_recv"), 1);
  EXPECT_EQ(count(layer.steps.backward, "cp_send_recv"), 1);
  EXPECT_EQ(count(layer.steps.backward, "flash_attention_backward"), 2);
  EXPECT_EQ(count(layer.steps.backward, "flash_attention_accumulate"), 1);
}

}  // namespace
}  // namespace orrery::lower
