// SPDX-License-Identifier: Apache-2.0
/// Decodes in FlashAttention-2's tiles beside a profile of a card, and with guesses.
#include <gtest/gtest.h>

#include <algorithm>

#include "machine/compute/decode_tiles.h"
#include "machine/machine.h"
#include "serving/step/step_cost.h"

namespace orrery::step {
namespace {

/// Launches of decodes beside a prompt of 16 tokens, Llama-3.1-8B on an RTX PRO 6000 (vLLM 0.19;
/// skew.csv of the card, profiler/perf/RTXPRO6000 of casys-kaist/LLMServingSim@b9c6fb8e;
/// published-read): `many` of `few_keys` and `some` of `keys`, microseconds of the launch, and of
/// one whose decodes all have the mean.
struct Profiled {
  std::int64_t many;
  std::int64_t few_keys;
  std::int64_t some;
  std::int64_t keys;
  double equal_us;
  double unequal_us;
};

class ProfiledDecodes : public ::testing::TestWithParam<Profiled> {};

TEST_P(ProfiledDecodes, TakeWhatTheCardTook) {
  const Profiled& row = GetParam();
  machine::Machine machine = machine::load_machine("rtx-pro-6000").value();
  machine.device = compute::at_boost(machine.device);  // one kernel for a moment
  const std::int64_t sequences = row.many + row.some;
  const std::int64_t keys = row.many * row.few_keys + row.some * row.keys;
  compute::DecodeTiles tiles{.sequences = sequences,
                             .heads = 32,
                             .kv_heads = 8,
                             .head_dim = 128,
                             .keys = static_cast<double>(keys),
                             .longest = static_cast<double>(row.keys),
                             .kv_head = Bytes(512 * keys)};
  const auto launched = [&] {
    const auto times = compute::decode_tiles(tiles, machine.device).value();
    return 1e6 * to_seconds(machine.device.kernels.attention_launch +
                            std::max(times.all + times.uneven, times.longest));
  };
  EXPECT_NEAR(launched() / row.unequal_us, 1, 0.17);
  tiles.longest = 0;
  EXPECT_NEAR(launched() / row.equal_us, 1, 0.24);
}

INSTANTIATE_TEST_SUITE_P(RtxPro6000, ProfiledDecodes,
                         ::testing::Values(Profiled{1, 512, 1, 8192, 100.352, 181.025},
                                           Profiled{7, 512, 1, 4096, 52.949, 110.325},
                                           Profiled{28, 512, 4, 1024, 100.715, 111.147},
                                           Profiled{28, 512, 4, 8192, 218.006, 307.735},
                                           Profiled{16, 512, 16, 2048, 199.978, 211.04},
                                           Profiled{112, 128, 16, 2048, 264.289, 300.95},
                                           Profiled{112, 512, 16, 2048, 452.908, 492.44},
                                           Profiled{112, 512, 16, 8192, 877.966, 910.808}));

TEST(DecodesWithGuesses, AreTilesOfTheirOwnToo) {
  // 64 decodes of 512 keys that verify two guesses each: 355.5 us in tiles of 64 rows
  // (step_cost_test.cc), where 137.4 MB of keys, values, queries and results take 160.3 us; in 32
  // layers.
  const StepShape shape{.tokens = 192,
                        .samples = 64,
                        .prompts = {},
                        .decodes = 64,
                        .queries = 3,
                        .visible = {64.0 * 512}};
  const auto time = [&](bool one_launch) {
    StepOptions options;
    options.one_launch = one_launch;
    return to_seconds(StepCost::make(zoo::load_model("llama-3.1-8b").value(),
                                     machine::load_machine("rtx-4090").value(), options)
                          .value()
                          .time(shape));
  };
  EXPECT_NEAR(time(true) - time(false), 32 * 195.2e-6, 32 * 2e-6);
}

TEST(DecodesAlone, WaitForTheLongestPartOfUnequalContexts) {
  StepOptions together;
  together.one_launch = true;
  const auto more = [&](std::int64_t count, double longest) {
    StepCost cost = StepCost::make(zoo::load_model("llama-3.1-8b").value(),
                                   machine::load_machine("rtx-4090").value(), together)
                        .value();
    StepShape shape{.tokens = count,
                    .samples = count,
                    .prompts = {},
                    .decodes = count,
                    .visible = {512.0 * static_cast<double>(count)}};
    const Time equal = cost.time(shape);
    shape.longest = longest;
    return to_seconds(cost.time(shape) - equal);
  };
  EXPECT_EQ(more(64, 512), 0);
  // 0.275 of a tile of 4,096 + 54.7 keys less one of 512 + 63.5 + 54.7, 35.3 ns each, in 32 layers.
  EXPECT_NEAR(more(64, 4096), 32 * 0.275 * (4150.7 - 630.2) * 35.3e-9, 32 * 1e-6);
  // 12 decodes: 25.4 MB at 0.85 of 1,008 GB/s take 29.6 us, the longest tile more.
  const auto longest = [](double keys) { return 32 * ((keys + 54.7) * 35.26e-9 - 29.6e-6); };
  // 96 tiles on 2 x 128: of 32 blocks of 128 keys five parts fill 1.875 waves, so 7 blocks a part.
  EXPECT_NEAR(more(12, 4096), longest(7 * 128), 32 * 0.1e-6);
  // A graph of 16 decodes, made for 8,192 keys: 0.5 waves, cut in two parts. Not one of 8.
  together.captures = {16};
  together.graph_context = 8192;
  EXPECT_NEAR(more(12, 4096), longest(4096), 32 * 0.3e-6);
  together.captures = {8};
  EXPECT_NEAR(more(12, 4096), longest(7 * 128), 32 * 0.1e-6);
}

}  // namespace
}  // namespace orrery::step
