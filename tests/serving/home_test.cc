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

/// TPI-LLM's laptops (published rates and latencies), their disks' rates given.
std::vector<machine::Machine> four_laptops(std::array<double, 4> disks) {
  const std::array<double, 4> megabits{510, 320, 610, 610};
  const std::array<Time, 4> paths{5_ms, 7_ms, 3_ms, 3_ms};
  std::vector<machine::Machine> laptops;
  for (std::size_t i = 0; i < disks.size(); ++i) {
    machine::Machine laptop = machine::load_machine("home-8").value();
    laptop.network.front().bandwidth = Bandwidth(1e6 / 8 * megabits[i]);
    laptop.network.front().latency = paths[i];
    laptop.device.memory[1].bandwidth = Bandwidth(1e9 * disks[i]);
    laptops.push_back(std::move(laptop));
  }
  return laptops;
}

HomeRun on_laptops(const std::vector<machine::Machine>& laptops, Home home) {
  home.devices = static_cast<std::int64_t>(laptops.size());
  return serve_at_home(zoo::load_model("llama-2-7b").value(), laptops, home).value();
}

TEST(Home, TheSlowestDiskOfUnequalDevicesDecides) {
  Home home;
  home.window = 4;
  // A quarter each: 26.4 GB of layers / 4 in fp32 from 1.3 GB/s.
  const HomeRun slow = on_laptops(four_laptops({3.3, 1.3, 3, 3}), home);
  const double layers = 32 * (4.0 * 4096 * 4096 + 3.0 * 4096 * 11008) * 4;
  EXPECT_NEAR(to_seconds(slow.next_token), layers / 4 / 1.3e9, 0.05 * layers / 4 / 1.3e9);
  // By the disks' rates: all load alike, 26.4 GB from 10.6 GB/s.
  home.powers = "33,13,30,30";
  const HomeRun even = on_laptops(four_laptops({3.3, 1.3, 3, 3}), home);
  EXPECT_LT(even.next_token, slow.next_token * 0.6);
  EXPECT_GT(to_seconds(even.next_token), layers / 10.6e9);
  EXPECT_EQ(even.all_reduce, slow.all_reduce);
  EXPECT_NEAR(to_seconds(slow.all_reduce), 14e-3, 0.2e-3);  // published: 14 ms
}

TEST(Home, OneKindOfDeviceIsAListOfEqualOnes) {
  const std::vector<machine::Machine> laptops(4, machine::load_machine("home-8").value());
  Home home;
  home.devices = 4;
  home.window = 3;
  const HomeRun list = on_laptops(laptops, home);
  const HomeRun one = at_home("llama-2-7b", home);
  EXPECT_EQ(list.next_token, one.next_token);
  EXPECT_EQ(list.first_token, one.first_token);
  EXPECT_EQ(list.all_reduce, one.all_reduce);
  EXPECT_EQ(list.master_memory, one.master_memory);
}

TEST(Home, EveryDeviceNeedsRoomForItsOwnShare) {
  auto laptops = four_laptops({3, 3, 3, 3});
  laptops[2].device.memory.front().capacity = 400000000_B;
  Home home;
  home.devices = 4;
  home.window = 4;
  const zoo::Model model = zoo::load_model("llama-2-7b").value();
  const auto run = serve_at_home(model, laptops, home);  // two of each: 0.4 GB of quarters
  ASSERT_FALSE(run.has_value());
  EXPECT_THAT(run.error().to_string(), ::testing::HasSubstr("one that fits 0.4 GB"));
  home.powers = "3,3,1,3";
  EXPECT_TRUE(serve_at_home(model, laptops, home).has_value());
}

RC_GTEST_PROP(WeightWindow, DevicesWaitForTheSlowestAndNoLonger, ()) {
  const auto some = [] { return Time(1'000'000 * *rc::gen::inRange(0, 50)); };
  const Time all_reduce = some();
  std::vector<BlockTimes> devices;
  BlockTimes most{.all_reduce = all_reduce};
  const WeightWindow window{.layers = *rc::gen::inRange(1, 8),
                            .blocks = *rc::gen::inRange(1, 6),
                            .retain = *rc::gen::inRange(0, 4)};
  Time slowest{0};
  for (int i = *rc::gen::inRange(1, 5); i > 0; --i) {
    devices.push_back({some(), some(), all_reduce, some(), some()});
    const BlockTimes& one = devices.back();
    most.attention = std::max(most.attention, one.attention);
    most.mlp = std::max(most.mlp, one.mlp);
    most.load_attention = std::max(most.load_attention, one.load_attention);
    most.load_mlp = std::max(most.load_mlp, one.load_mlp);
    slowest = std::max(slowest, stream_tokens(window, one, 3).first);
  }
  const Time together = stream_tokens(window, devices, 3).first;
  RC_ASSERT(together >= slowest);
  RC_ASSERT(together <= stream_tokens(window, most, 3).first);
}

}  // namespace
}  // namespace orrery::serving
