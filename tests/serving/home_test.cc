// SPDX-License-Identifier: Apache-2.0
/// TPI-LLM: laws of the window, published figures beside the model.
#include "serving/home.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace orrery::serving {
namespace {

/// 7B on four laptops (published): attention 11, MLP 17, all-reduce 14, loads 18 and 30 ms.
BlockTimes laptops(Time all_reduce) {
  return {.attention = 11_ms,
          .mlp = 17_ms,
          .all_reduce = all_reduce,
          .load_attention = 18_ms,
          .load_mlp = 30_ms};
}

TEST(WeightWindow, FourLaptopsWaitForTheFirstBlocksOnly) {
  // 32 (11 + 17 + 28) = 1,792 ms, and 23 of the first two loads, whatever the window from 2 on.
  EXPECT_TRUE(loose_condition(laptops(14_ms), 32));
  EXPECT_FALSE(tight_condition(laptops(14_ms)));
  for (std::int64_t blocks = 2; blocks <= 6; ++blocks) {
    const StreamedTokens token = stream_tokens({.layers = 32, .blocks = blocks}, laptops(14_ms), 3);
    EXPECT_EQ(token.first, 1815_ms) << blocks;
    EXPECT_EQ(token.stall, 23_ms) << blocks;
    EXPECT_EQ(token.next, 1792_ms) << blocks;
  }
}

TEST(WeightWindow, KeepingBlocksMakesUpForAFastNetwork) {
  // All-reduce 5 ms: stalls of one token as the MLP of every T-th layer stays (derived).
  for (const auto& [retain, stall] : {std::pair{1, 18_ms}, {2, 18_ms}, {4, 102_ms}, {8, 222_ms}}) {
    const WeightWindow window{.layers = 32, .blocks = 4, .retain = retain};
    EXPECT_EQ(stream_tokens(window, laptops(5_ms), 1).stall, stall) << retain;
  }
}

RC_GTEST_PROP(WeightWindow, ConditionsAndWindowsKeepTheirWord, ()) {
  const auto some = [] { return Time(1'000'000 * *rc::gen::inRange(0, 50)); };
  const BlockTimes times{.attention = some(),
                         .mlp = some(),
                         .all_reduce = some(),
                         .load_attention = some(),
                         .load_mlp = some()};
  const WeightWindow window{.layers = *rc::gen::inRange(1, 12), .blocks = *rc::gen::inRange(2, 9)};
  const StreamedTokens run = stream_tokens(window, times, 4);
  const Time work = window.layers * (times.attention + times.mlp + 2 * times.all_reduce);
  const Time loads = window.layers * (times.load_attention + times.load_mlp);
  RC_ASSERT(run.next + 1_ps >= work);
  RC_ASSERT(run.first >= work);
  if (window.blocks < 2 * window.layers) {
    RC_ASSERT(run.first + run.next * 3 >= loads * 4 - loads);
    WeightWindow wider = window;
    ++wider.blocks;
    RC_ASSERT(stream_tokens(wider, times, 4).next <= run.next);
  }
  if (tight_condition(times)) {
    RC_ASSERT(run.next == work);
    RC_ASSERT(times.attention + times.mlp + 2 * times.all_reduce >=
              times.load_attention + times.load_mlp);
  }
}

HomeRun at_home(const char* model, Home home) {
  return serve_at_home(zoo::load_model(model).value(), machine::load_machine("home-8").value(),
                       home)
      .value();
}

/// Eight devices, w = 2: seconds a token and GB of the master (published), without the scheduler.
struct PublishedRow {
  const char* model;
  double token_s;
  double memory_gb;
};
constexpr std::array<PublishedRow, 5> kTable{{{"llama-2-7b", 2.6, 1.7},
                                              {"llama-2-13b", 2.9, 2.1},
                                              {"llama-2-70b", 26.1, 3.1},
                                              {"llama-3.1-8b", 4.3, 5.4},
                                              {"llama-3.1-70b", 29.9, 11.3}}};

TEST(Home, MemoryAndSecondsOfATokenBesideThePublishedTable) {
  machine::Machine machine = machine::load_machine("home-8").value();
  machine.device.memory.front().capacity = 12_GiB;  // 8 GB and 4 of swap (published)
  for (const PublishedRow& row : kTable) {
    Home home;
    home.window = 2;
    const HomeRun run = serve_at_home(zoo::load_model(row.model).value(), machine, home).value();
    const double gib = static_cast<double>(run.master_memory.value()) / (1024.0 * 1024 * 1024);
    const double process = 0.305 + 1.383 * gib;  // what a process has beside weights (derived)
    fmt::print(
        "{:<14} {:5.2f} s a token, published {:5.1f} ({:+.0f} %); weights {:.2f} GiB, "
        "process {:.2f} GB, published {:.1f}\n",
        row.model, to_seconds(run.next_token), row.token_s,
        100 * (to_seconds(run.next_token) / row.token_s - 1), gib, process, row.memory_gb);
    EXPECT_NEAR(process, row.memory_gb, 0.33) << row.model;
    EXPECT_NE(run.token_all_reduce, collective::GatewayAlgorithm::ring);
  }
}

TEST(Home, APromptTakesAnotherAlgorithmThanAToken) {
  Home home;
  home.window = 2;
  home.input = 1024;
  const HomeRun run = at_home("llama-2-7b", home);
  EXPECT_EQ(run.message, 16_KiB);  // 4,096 numbers of 4 bytes
  EXPECT_EQ(run.token_all_reduce, collective::GatewayAlgorithm::star);
  EXPECT_EQ(run.prompt_all_reduce, collective::GatewayAlgorithm::ring);
}

TEST(Home, TheBestWindowIsNotSlowerThanOthersAndFits) {
  const HomeRun best = at_home("llama-2-7b", {});
  EXPECT_LE(best.master_memory, 8000000000_B);
  for (const std::int64_t window : {2, 3, 4, 6}) {
    Home home;
    home.window = window;
    EXPECT_LE(best.next_token, at_home("llama-2-7b", home).next_token) << window;
  }
}

TEST(Home, SharesFollowThePowers) {
  // Powers 2, 1, 1: the master has half; a worker's blocks are those of 4 equal devices.
  Home uneven;
  uneven.devices = 3;
  uneven.window = 4;
  uneven.powers = "2,1,1";
  Home even = uneven;
  even.powers.clear();
  const HomeRun run = at_home("llama-2-7b", uneven);
  EXPECT_EQ(run.attention, at_home("llama-2-7b", even).attention);  // all finish together
  EXPECT_GT(run.load_mlp, at_home("llama-2-7b", even).load_mlp);    // the master's half
  even.powers = "1,1";
  const auto wrong = serve_at_home(zoo::load_model("llama-2-7b").value(),
                                   machine::load_machine("home-8").value(), even);
  ASSERT_FALSE(wrong.has_value());
  EXPECT_THAT(wrong.error().to_string(), ::testing::HasSubstr("3 numbers"));
  const auto encoder = serve_at_home(zoo::load_model("bert-base").value(),
                                     machine::load_machine("home-8").value(), Home());
  ASSERT_FALSE(encoder.has_value());
  EXPECT_THAT(encoder.error().to_string(), ::testing::HasSubstr("a decoder"));
}

}  // namespace
}  // namespace orrery::serving
