// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "serving/step/step_cost.h"

namespace orrery::step {
namespace {

StepCost on_dgx_h100(const char* model, const StepOptions& options) {
  return StepCost::make(zoo::load_model(model).value(), machine::load_machine("dgx-h100").value(),
                        options)
      .value();
}

Time prompt_time(const char* model, const StepOptions& options, std::int64_t tokens) {
  StepCost cost = on_dgx_h100(model, options);
  return cost.time({.tokens = tokens,
                    .samples = 1,
                    .prompts = {{.queries = tokens, .context = 0}},
                    .decodes = 0,
                    .visible = std::vector<double>(cost.windows().size(), 0)});
}

/// Returns the time by which a step is shorter when its communication is fused.
Time saved_by_fusion(const char* model, StepOptions options, std::int64_t tokens) {
  const Time base = prompt_time(model, options, tokens);
  options.fuse = true;
  return base - prompt_time(model, options, tokens);
}

/// Returns the place of `pair`; none: no such place.
std::optional<FusedPlace> fused_place(const char* model, StepOptions options, const char* pair) {
  options.fuse = true;
  for (const FusedPlace& one : on_dgx_h100(model, options).fused_places(8192)) {
    if (one.pair == pair) {
      return one;
    }
  }
  return std::nullopt;
}

TEST(FusedPass, FusedStagesSendSlices) {
  // 8192 rows of 8192 x 2 bytes are M = 128 MiB. Between stages of 8 ranks in nodes, 50 GB/s a NIC,
  // 7/8 M are not sent: 2.35 ms; all else is as with one stage.
  StepOptions options;
  options.degrees = {.tp = 8, .pp = 1};
  const Time one = saved_by_fusion("llama-3-70b", options, 8192);
  options.degrees.pp = 2;
  const Time two = saved_by_fusion("llama-3-70b", options, 8192);
  EXPECT_NEAR(to_seconds(two - one), 7.0 / 8 * 134217728 / 50e9, 0.1e-3);
  options.degrees.pp = 4;
  EXPECT_EQ(saved_by_fusion("llama-3-70b", options, 8192) - one, 3 * (two - one));
}

TEST(FusedPass, SlicesOfTokensShortenNorms) {
  // 160 norms of 8192 rows of 16 KiB read the sum and the stream and write both, 4 M: 160 us at
  // 3.35 TB/s, at least; a rank of 8 saves 7/8. A ring's halves take what it takes: of all norms 22
  // ms at least, at half of the bandwidth twice that.
  StepOptions options;
  options.degrees = {.tp = 8};
  options.all_reduce = collective::CollectiveAlgorithm::ring;
  const Time saved = saved_by_fusion("llama-3-70b", options, 8192);
  EXPECT_GT(saved, 20_ms);
  EXPECT_LT(saved, 45_ms);
  // Switches that add (NVLS) are faster than two halves, by less than the norms gain.
  options.all_reduce = collective::CollectiveAlgorithm::custom;
  const Time beside = saved_by_fusion("llama-3-70b", options, 8192);
  EXPECT_GT(beside, Time(0));
  EXPECT_LT(beside, saved);
  const auto place = fused_place("llama-3-70b", options, "tp+sp");
  ASSERT_TRUE(place);
  EXPECT_EQ(place->places, 160);
  EXPECT_EQ(place->reason, "");
  // Also with shared prompts, of whose rows a rank has a half.
  options.degrees = {.tp = 8, .cp = 2};
  EXPECT_NEAR(saved_by_fusion("llama-3-70b", options, 16384) / beside, 1, 0.01);
  EXPECT_THAT(fused_place("llama-3-70b", options, "cp")->reason,
              testing::HasSubstr("output projection"));
}

TEST(FusedPass, TokensLeaveForTheirExpertsFromSlices) {
  // 94 layers: attention's sums stay shards, and the experts' results come back as such.
  StepOptions options;
  options.degrees = {.tp = 4, .dp = 4, .ep = 16};
  options.dispatch = plan::MoeDispatch::all_to_all;
  const auto place = fused_place("qwen3-235b-a22b", options, "tp+ep");
  ASSERT_TRUE(place);
  EXPECT_EQ(place->places, 94);
  EXPECT_EQ(place->before, "all_reduce tp");
  EXPECT_EQ(place->after, "reduce_scatter tp");
  EXPECT_EQ(place->reason, "");
  // At least a half of every sum of 8192 rows of 4096 x 2 bytes, beside norms.
  EXPECT_GT(saved_by_fusion("qwen3-235b-a22b", options, 8192),
            94 * (place->time_before - place->time_after) * 0.99);
  // What reads all tokens is gathered whole: no gain beyond that of norms.
  EXPECT_THAT(fused_place("deepseek-v3", options, "tp+ep")->reason,
              testing::HasSubstr("shared expert"));
  EXPECT_GT(saved_by_fusion("deepseek-v3", options, 8192), Time(0));
  options.dispatch = plan::MoeDispatch::all_gather;
  EXPECT_THAT(fused_place("qwen3-235b-a22b", options, "tp+ep")->reason,
              testing::HasSubstr("allgather"));
}

TEST(FusedPass, PairsThatCannotBeFusedSayWhy) {
  StepOptions options;
  options.degrees = {.tp = 8, .pp = 2, .ep = 8};
  EXPECT_THAT(fused_place("deepseek-v3", options, "pp+ep")->reason,
              testing::HasSubstr("attention reads"));
  EXPECT_THAT(fused_place("deepseek-v3", options, "tp+ep")->reason, testing::HasSubstr("dp 1"));
  EXPECT_EQ(fused_place("deepseek-v3", options, "tp+pp")->reason, "");
  options.degrees = {.tp = 1, .pp = 8};
  options.fuse = true;
  EXPECT_TRUE(on_dgx_h100("llama-3-70b", options).fused_places(8192).empty());
}

TEST(FusedPass, FusionIsNeverSlowerNorForNothing) {
  for (const collective::CollectiveAlgorithm algorithm :
       {collective::CollectiveAlgorithm::custom, collective::CollectiveAlgorithm::automatic,
        collective::CollectiveAlgorithm::ring}) {
    StepOptions options;
    options.degrees = {.tp = 8, .pp = 2};
    options.all_reduce = algorithm;
    for (const std::int64_t tokens : {1, 7, 64, 1000, 8185, 8192}) {
      const Time saved = saved_by_fusion("llama-3-70b", options, tokens);
      EXPECT_GE(saved, Time(0)) << tokens;
      // At most what is not sent, at 50 GB/s, and 159 norms, be the all_reduce as slow as it may.
      const std::int64_t shard = (tokens + 7) / 8;
      const auto unsent = static_cast<double>(tokens - shard) * 8192 * 2;
      EXPECT_LE(to_seconds(saved), 1.15 * unsent / 50e9 + 159 * (4 * unsent / 2e12 + 10e-6))
          << tokens;
    }
  }
  StepOptions alone;
  alone.degrees = {.tp = 1, .pp = 8};
  EXPECT_EQ(saved_by_fusion("llama-3-70b", alone, 8192), Time(0));
}

}  // namespace
}  // namespace orrery::step
