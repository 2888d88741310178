// SPDX-License-Identifier: Apache-2.0
// What single knobs of a plan refuse; plan_test.cc has the degrees.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cases.h"
#include "workload/plan/plan.h"
#include "workload/plan/tensor_overlap.h"

namespace orrery::plan {
namespace {

using cases::small_gpt;
using testing::HasSubstr;

std::string refusal(const Plan& plan, const zoo::Model& model = small_gpt(1)) {
  const Result<void> checked = check(plan, model);
  return checked ? "" : checked.error().to_string();
}

Plan zero_bubble(Schedule schedule, std::int64_t pp, std::int64_t microbatches) {
  return {.pp = pp,
          .schedule = schedule,
          .chunks = schedule == Schedule::zb_v ? 2 : 1,
          .global_batch = microbatches};
}

TEST(CheckSchedules, NameWhatDoesNotFit) {
  const auto mistakes = [](const Plan& plan) { return refusal(plan, small_gpt(12)); };
  EXPECT_EQ(mistakes(zero_bubble(Schedule::zb_h1, 4, 2)), "");
  EXPECT_EQ(mistakes(zero_bubble(Schedule::zb_v, 3, 2)), "");
  EXPECT_EQ(mistakes(zero_bubble(Schedule::dualpipe, 4, 2)), "");
  EXPECT_THAT(mistakes(zero_bubble(Schedule::zb_h1, 1, 2)), HasSubstr("2 or more with schedule"));
  EXPECT_THAT(mistakes(zero_bubble(Schedule::dualpipe, 3, 2)), HasSubstr("an even number"));
  EXPECT_THAT(mistakes(zero_bubble(Schedule::dualpipe, 4, 3)),
              HasSubstr("an even number of microbatches"));
  Plan plan = zero_bubble(Schedule::zb_v, 3, 6);
  plan.chunks = 1;
  EXPECT_THAT(mistakes(plan), HasSubstr("2 with schedule zb-v"));
}

TEST(CheckOverlapTensor, WantsTensorParallelismAndNoOtherPieces) {
  Plan plan;
  plan.overlap_tensor = TensorOverlap::tracked;
  const Result<void> alone = check(plan, small_gpt(2));
  ASSERT_FALSE(alone);
  EXPECT_THAT(alone.error().to_string(),
              HasSubstr("overlap_tensor: found 'tracked', expected none without tensor"));
  plan.tp = 2;
  EXPECT_TRUE(check(plan, small_gpt(2)));
  plan.tp_chunks = 2;
  const Result<void> cut = check(plan, small_gpt(2));
  ASSERT_FALSE(cut);
  EXPECT_THAT(cut.error().to_string(), HasSubstr("none or chunked with tp_chunks above 1"));
}

TEST(CheckOverlapTensor, ChunkedCutsIntoTpPiecesUnlessTpChunksSaysOtherwise) {
  Plan plan;
  plan.overlap_tensor = TensorOverlap::chunked;
  ASSERT_FALSE(check(plan, small_gpt(2)));
  plan.tp = 4;
  EXPECT_TRUE(check(plan, small_gpt(2)));
  EXPECT_EQ(tensor_pieces(plan), 4);
  plan.tp_chunks = 2;
  EXPECT_TRUE(check(plan, small_gpt(2)));
  EXPECT_EQ(tensor_pieces(plan), 2);
}

TEST(CheckLora, UnknownTargetsAndWhatAdaptersDoNotGoWith) {
  Plan plan{.lora_rank = 4, .lora_targets = "attention_qkw"};
  plan.schedule = Schedule::zb_h1;
  plan.pp = plan.tp = plan.global_batch = 2;
  plan.recompute_modules = "mlp";
  const Result<void> checked = check(plan, small_gpt(2));
  ASSERT_FALSE(checked);
  const std::string error = checked.error().to_string();
  for (const char* part :
       {"did you mean 'attention_qkv'", "schedule",
        "recompute_modules: found 'mlp', expected none, or narrow_act, with lora_rank"}) {
    EXPECT_THAT(error, HasSubstr(part));
  }
  Plan without;
  without.lora_targets = "mlp";
  EXPECT_FALSE(check(without, small_gpt(1)));
}

TEST(CheckRemote, PlansThatContradictAreRefusedWithEveryReason) {
  const auto mistakes = [](const Plan& plan) { return refusal(plan, small_gpt(2)); };
  EXPECT_EQ(
      mistakes(
          {.zero = 3, .offload_optimizer = Offload::remote, .offload_params = Offload::remote}),
      "");
  EXPECT_THAT(mistakes({.offload_params = Offload::cpu}), HasSubstr("none or remote"));
  const std::string plain = mistakes({.offload_params = Offload::remote});
  EXPECT_THAT(plain, HasSubstr("zero: found '0', expected 3"));
  EXPECT_THAT(plain, HasSubstr("offload_optimizer: found 'none', expected remote"));
  EXPECT_THAT(mistakes({.pool_collectives = true}), HasSubstr("offload_params remote"));
}

TEST(CheckQuantize, RefusesWhatItCannotMean) {
  Plan plan;
  plan.quantized_params = true;
  EXPECT_THAT(refusal(plan), HasSubstr("quantized_params: found 'true', expected a quantization"));
  EXPECT_THAT(refusal(plan), HasSubstr("expected zero of 1 or more"));
  plan = {.fused_conversions = true};
  EXPECT_THAT(refusal(plan), HasSubstr("fused_conversions: found 'true', expected false, or a"));
  plan = {.quantization = Quantization::mxfp8};
  plan.compute_type = graph::DataType::fp32;
  EXPECT_THAT(refusal(plan), HasSubstr("quantization: found 'mxfp8', expected none, or"));
  plan = {};
  plan.master_type = graph::DataType::fp8;
  plan.moment_type = graph::DataType::fp4;
  EXPECT_THAT(refusal(plan), HasSubstr("master_type: found 'fp8', expected fp32, bf16 or fp16"));
  EXPECT_THAT(refusal(plan), HasSubstr("moment_type: found 'fp4'"));
}

TEST(CheckUnquantized, RefusesWhatItCannotMean) {
  Plan plan{.unquantized_end_layers = 1, .unquantized_modules = "mlp"};
  EXPECT_THAT(refusal(plan), HasSubstr("unquantized_end_layers: found '1', expected 0 without"));
  EXPECT_THAT(refusal(plan), HasSubstr("unquantized_modules: found 'mlp', expected none without"));
  plan.quantization = Quantization::fp8_delayed;
  EXPECT_THAT(refusal(plan), HasSubstr("expected 0 with fp8-delayed"));
  plan.quantization = Quantization::nvfp4;
  EXPECT_EQ(refusal(plan), "");
  plan.unquantized_start_layers = -1;
  plan.unquantized_end_layers = 99;
  plan.unquantized_modules = "attentoin,mamba";
  EXPECT_THAT(refusal(plan), HasSubstr("unquantized_start_layers: found '-1', expected a number"));
  EXPECT_THAT(refusal(plan), HasSubstr("unquantized_end_layers: found '99', expected a number"));
  EXPECT_THAT(refusal(plan), HasSubstr("found 'attentoin'"));
  EXPECT_THAT(refusal(plan), HasSubstr("did you mean 'attention'?"));
  EXPECT_THAT(refusal(plan), HasSubstr("found 'mamba'"));
}

TEST(CheckRecompute, RefusesUnknownNamesAndContradictions) {
  EXPECT_THAT(refusal({.recompute_modules = "mlp,layrnorm"}),
              HasSubstr("recompute_modules: found 'layrnorm'"));
  EXPECT_THAT(refusal({.recompute_modules = "layrnorm"}), HasSubstr("did you mean 'layernorm'?"));
  EXPECT_THAT(refusal({.recompute = Recompute::full, .recompute_modules = "mlp"}),
              HasSubstr("expected none with recompute full"));
  EXPECT_THAT(refusal({.recompute_layers = 1}), HasSubstr("recompute_layers: found '1', expected"));
  EXPECT_THAT(refusal({.recompute = Recompute::full, .recompute_layers = 999}),
              HasSubstr("recompute_layers: found '999', expected at most"));
}

TEST(CheckDocuments, RefusesOtherSumsAndKernelsThatComputeTheSquare) {
  Plan plan{.documents = "64,32"};
  EXPECT_THAT(refusal(plan), HasSubstr("lengths that sum to the sequence's 128 tokens (here 96)"));
  EXPECT_THAT(refusal(plan), HasSubstr("attention flash: unfused kernels compute the whole"));
  plan.documents = "64,,x,0";
  EXPECT_THAT(refusal(plan), HasSubstr("documents: found 'x', expected a length"));
  EXPECT_THAT(refusal(plan), HasSubstr("documents: found '0', expected a length"));
}

}  // namespace
}  // namespace orrery::plan
