// SPDX-License-Identifier: Apache-2.0
#include "workload/memory/footprint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <cmath>

#include "../plan/cases.h"

namespace orrery::footprint {
namespace {

using testing::HasSubstr;

constexpr double kGiB = 1024.0 * 1024 * 1024;

std::vector<StageMemory> footprint(const zoo::Model& model, const plan::Plan& plan) {
  Result<std::vector<StageMemory>> stages = memory_footprint(model, plan);
  if (!stages) {
    ADD_FAILURE() << stages.error().to_string();
    return {};
  }
  return *stages;
}

double gib(Bytes bytes) {
  return static_cast<double>(bytes.value()) / kGiB;
}

// ---- Korthikanti et al. 2022 (arXiv:2205.05198), table 3 and figures 1 and 7, as coded in
// calculon-ai/calculon@caa4b11f8fe1 validation.py. Sequence 2048, vocabulary 51200, tp 8. Their
// parameters are 12 L H^2 / (p t) at 18 bytes and leave embeddings out; their activations are the
// first stage's layers.

struct Published {
  const char* model;
  std::int64_t layers, hidden, heads;
  std::int64_t pp, chunks, microbatch, batch;
  double state_gib;                                          // parameters, gradients and optimizer
  double none_gib, sequence_selective_gib;                   // activations
  double sequence_percent, selective_percent, full_percent;  // of none
};

constexpr std::array kPublished{
    Published{"22B", 48, 6144, 64, 1, 1, 4, 4, 45.5625, 59.25, 9.5625, 66.84, 49.42, 7.64},
    Published{"175B", 96, 12288, 96, 8, 3, 1, 64, 45.5625, 66.84375, 12.3515625, 62.04, 56.53,
              8.71},
    Published{"530B", 105, 20480, 128, 35, 3, 1, 280, 31.640625, 114.0234375, 23.076171875, 58.31,
              62.04, 9.42},
    Published{"1T", 128, 25600, 160, 64, 1, 1, 512, 32.958984375, 131.25, 26.5625, 58.31, 62.04,
              9.42},
};

zoo::Model model_of(const Published& row) {
  zoo::Model model = zoo::gpt_model(row.model, row.layers, row.hidden, row.heads, 2048, 51200);
  model.embedding_dropout = 0;  // its mask is no layer's; in the first stage 1 byte per element
  return model;
}

plan::Plan plan_of(const Published& row, bool sequence_parallel, plan::Recompute recompute) {
  return {.tp = 8,
          .pp = row.pp,
          .sequence_parallel = sequence_parallel,
          .schedule = row.chunks > 1 ? plan::Schedule::interleaved : plan::Schedule::one_f_one_b,
          .chunks = row.chunks,
          .microbatch = row.microbatch,
          .global_batch = row.batch,
          .recompute = recompute};
}

double activations_gib(const Published& row, bool sequence_parallel, plan::Recompute recompute) {
  return gib(footprint(model_of(row), plan_of(row, sequence_parallel, recompute))
                 .front()
                 .highest[plan::MemoryCategory::activations]);
}

double state_gib(const Published& row) {
  const auto stages = footprint(model_of(row), plan_of(row, false, plan::Recompute::none));
  const StageMemory& stage = stages[stages.size() / 2];  // without embedding where there is one
  return gib(stage[plan::MemoryCategory::parameters] + stage[plan::MemoryCategory::gradients] +
             stage[plan::MemoryCategory::optimizer]);
}

class Mape {
 public:
  void add(const std::string& what, double predicted, double published) {
    const double error = std::abs(predicted / published - 1);
    sum_ += error;
    ++count_;
    EXPECT_LT(error, 0.08) << what << ": predicted " << predicted << ", published " << published;
  }
  double value() const { return sum_ / count_; }

 private:
  double sum_ = 0;
  int count_ = 0;
};

TEST(MemoryPublished, ParametersAndOptimizerOfKorthikanti2022) {
  Mape mape;
  for (const Published& row : kPublished) {
    mape.add(row.model, state_gib(row), row.state_gib);
  }
  EXPECT_LT(mape.value(), 0.02);
}

TEST(MemoryPublished, ActivationsOfKorthikanti2022) {
  Mape mape;
  for (const Published& row : kPublished) {
    mape.add(row.model, activations_gib(row, false, plan::Recompute::none), row.none_gib);
    mape.add(row.model, activations_gib(row, true, plan::Recompute::selective),
             row.sequence_selective_gib);
  }
  EXPECT_LT(mape.value(), 0.03);
}

TEST(MemoryPublished, SavingsOfEachTechniqueOfKorthikanti2022) {
  Mape mape;
  for (const Published& row : kPublished) {
    const double none = row.none_gib / 100;
    mape.add(std::string(row.model) + " sequence",
             activations_gib(row, true, plan::Recompute::none), row.sequence_percent * none);
    mape.add(std::string(row.model) + " selective",
             activations_gib(row, false, plan::Recompute::selective), row.selective_percent * none);
    mape.add(std::string(row.model) + " full", activations_gib(row, false, plan::Recompute::full),
             row.full_percent * none);
  }
  EXPECT_LT(mape.value(), 0.03);
}

// ---- By hand. small_gpt: 2 layers of 49,984, embedding 73,728, final norm 128: P = 173,824.

using cases::kEmbedding;
using cases::kHidden;
using cases::kLayer;
using cases::kTokens;
using cases::kWords;
constexpr std::int64_t kParameters = 2 * kLayer + kEmbedding + 128;

plan::Plan plain(graph::DataType grad, std::int64_t zero, std::int64_t dp) {
  return {.dp = dp, .global_batch = dp, .zero = zero, .grad_type = grad};
}

Bytes state(const StageMemory& memory) {
  return memory[plan::MemoryCategory::parameters] + memory[plan::MemoryCategory::gradients] +
         memory[plan::MemoryCategory::optimizer];
}

TEST(Memory, EighteenBytesPerParameterWithFp32Gradients) {
  const auto stages = footprint(cases::small_gpt(2), plain(graph::DataType::fp32, 0, 4));
  EXPECT_EQ(state(stages[0]), Bytes(18 * kParameters));
}

TEST(Memory, SixteenBytesPerParameterWithHalfPrecisionGradients) {
  // Rajbhandari et al. 2020, section 3.1: 2 + 2 + 12.
  const auto stages = footprint(cases::small_gpt(2), plain(graph::DataType::bf16, 0, 4));
  EXPECT_EQ(state(stages[0]), Bytes(16 * kParameters));
}

TEST(Memory, ZeroStagesShardOptimizerThenGradientsThenParameters) {
  // Rajbhandari et al. 2020, figure 1, with 16-bit gradients: 4 + 12/4, 2 + 14/4, 16/4 bytes each.
  const auto each = [](std::int64_t zero) {
    const auto stages = footprint(cases::small_gpt(2), plain(graph::DataType::bf16, zero, 4));
    return static_cast<double>(state(stages[0]).value()) / kParameters;
  };
  EXPECT_NEAR(each(1), 7.0, 1e-4);
  EXPECT_NEAR(each(2), 5.5, 1e-4);
  EXPECT_NEAR(each(3), 4.0, 1e-4);
}

TEST(Memory, GradientsTravelInOneBufferOrInBuckets) {
  // 600 bytes in blocks of at most 100: one buffer; a bucket of at least one block, two when one
  // fills while the one before travels; never more than there is.
  plan::Plan plan;
  EXPECT_EQ(bucket_bytes(plan, 600_B, 100_B), 600_B);
  plan.bucket = 250_B;
  EXPECT_EQ(bucket_bytes(plan, 600_B, 100_B), 250_B);
  plan.bucket = 30_B;
  EXPECT_EQ(bucket_bytes(plan, 600_B, 100_B), 100_B);
  plan.overlap_grad_reduce = true;
  EXPECT_EQ(bucket_bytes(plan, 600_B, 100_B), 200_B);
  plan.bucket = 1_GiB;
  EXPECT_EQ(bucket_bytes(plan, 600_B, 100_B), 600_B);
}

TEST(Memory, Zero2WithoutABucketTakesDeepSpeedsAndNeedsLessThanZero1) {
  // 2 bytes per element on the wire: 1e9 bytes. GPT of 24 x 12 x 4096^2 = 4.8e9 parameters on 8
  // ranks: gradients of 2 bytes shrink by 7/8 of 9.7e9, 8.5e9, and the bucket of 1e9 comes on top.
  const plan::Plan plain{
      .zero = 2, .grad_type = graph::DataType::bf16, .grad_reduce_type = graph::DataType::bf16};
  EXPECT_EQ(bucket_bytes(plain, 3_GiB, 100_B), Bytes(1'000'000'000));
  EXPECT_EQ(bucket_bytes(plain, 600_B, 100_B), 600_B);
  const auto total = [](std::int64_t zero) {
    const plan::Plan plan{.dp = 8,
                          .global_batch = 8,
                          .zero = zero,
                          .grad_type = graph::DataType::bf16,
                          .grad_reduce_type = graph::DataType::bf16,
                          .attention = zoo::AttentionKernel::flash};
    return footprint(zoo::gpt_model("GPT", 24, 4096, 32, 1024, 51200), plan)[0].total();
  };
  EXPECT_LT(total(2) + 6_GiB, total(1));
}

TEST(Memory, Zero2HoldsUnreducedGradientsInBackward) {
  // 4 bytes per parameter on the wire, all there when the embedding's backward ends.
  const auto buffers = [&](std::int64_t zero) {
    plan::Plan plan = plain(graph::DataType::fp32, zero, 4);
    plan.attention = zoo::AttentionKernel::flash;
    return footprint(cases::small_gpt(2), plan)[0].highest[plan::MemoryCategory::buffers];
  };
  EXPECT_GE(buffers(2), Bytes(4 * kParameters));
  EXPECT_LT(buffers(1), Bytes(4 * kParameters));
}

TEST(Memory, TheLastStageKeepsACopyOfATiedEmbedding) {
  // Stage 0: one layer, both tables. Stage 1: one layer, final norm, token table of 1024 x 64.
  const auto stages = footprint(cases::small_gpt(2), {.pp = 2, .global_batch = 2});
  EXPECT_EQ(stages[0][plan::MemoryCategory::parameters], Bytes(2 * (kLayer + kEmbedding)));
  EXPECT_EQ(stages[1][plan::MemoryCategory::parameters],
            Bytes(2 * (kLayer + 128 + kWords * kHidden)));
}

TEST(Memory, LogitsAreFourBytesPerTokenAndWordAndTwoMoreWhileTheHeadRuns) {
  const auto stages = footprint(cases::small_gpt(2), {.pp = 2, .global_batch = 2});
  EXPECT_EQ(stages[0].highest[plan::MemoryCategory::logits], 0_B);
  EXPECT_EQ(stages[1].highest[plan::MemoryCategory::logits], Bytes((4 + 2) * kTokens * kWords));
}

TEST(Memory, GpipeKeepsEveryMicrobatch) {
  plan::Plan plan{.pp = 2, .global_batch = 8};
  EXPECT_EQ(footprint(cases::small_gpt(2), plan)[0].microbatches_in_flight, 2);
  plan.schedule = plan::Schedule::gpipe;
  const auto stages = footprint(cases::small_gpt(2), plan);
  EXPECT_EQ(stages[0].microbatches_in_flight, 8);
  EXPECT_EQ(stages[1].highest[plan::MemoryCategory::logits], Bytes((8 * 4 + 2) * kTokens * kWords));
}

TEST(Memory, FullRecomputeKeepsLayerInputsAndOneLayersWork) {
  // Inputs 2 S H of 4 layers; embedding mask S H; head: norm and logits inputs 2 x 2 S H. One
  // layer's S H (34 + 5 a S / H) = 8192 x (34 + 80) comes back while its backward runs.
  plan::Plan plan{.recompute = plan::Recompute::full};
  const StageMemory full = footprint(cases::small_gpt(4), plan)[0];
  EXPECT_EQ(full.highest[plan::MemoryCategory::activations],
            Bytes(kTokens * kHidden * (4 * 2 + 1 + 4)));
  plan.recompute = plan::Recompute::none;
  const StageMemory none = footprint(cases::small_gpt(4), plan)[0];
  EXPECT_EQ(
      full.highest[plan::MemoryCategory::buffers] - none.highest[plan::MemoryCategory::buffers],
      Bytes(kTokens * kHidden * (34 + 80)));
}

TEST(Memory, RefusesStagesThatDoNotFitAndSaysByHowMuch) {
  machine::Machine machine;
  machine.device.memory = {{"hbm", 1_MiB, Bandwidth(1e12), Time(0)}};
  const auto stages = footprint(cases::small_gpt(2), {.pp = 2, .global_batch = 2});
  const Result<void> fits = check_fits(stages, machine);
  ASSERT_FALSE(fits);
  EXPECT_EQ(fits.error().mistakes.size(), 1);  // one line for the cause
  EXPECT_THAT(fits.error().to_string(), HasSubstr("2 of 2 stages do not fit"));
  EXPECT_THAT(fits.error().to_string(),
              HasSubstr("stage 0, backward of microbatch 0, layer 0: found"));
  EXPECT_THAT(fits.error().to_string(), HasSubstr("optimizer"));
  machine.device.memory[0].capacity = 1_GiB;
  EXPECT_TRUE(check_fits(stages, machine));
}

RC_GTEST_PROP(MemoryLaws, RecomputeAndZeroNeverTakeMore, ()) {
  cases::Case c = *cases::any_case();
  const auto total = [&](plan::MemoryCategory category) {
    Bytes sum{0};
    for (const StageMemory& stage : footprint(c.model, c.plan)) {
      sum += stage.highest[category];
    }
    return sum;
  };
  c.plan.recompute = plan::Recompute::none;
  const Bytes kept = total(plan::MemoryCategory::activations);
  c.plan.recompute = plan::Recompute::selective;
  RC_ASSERT(total(plan::MemoryCategory::activations) <= kept);
  c.plan.zero = 0;
  c.plan.overlap_param_gather = false;
  const Bytes whole = total(plan::MemoryCategory::optimizer);
  c.plan.zero = 1;
  RC_ASSERT(total(plan::MemoryCategory::optimizer) <= whole);
}

}  // namespace
}  // namespace orrery::footprint
