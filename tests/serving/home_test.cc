// SPDX-License-Identifier: Apache-2.0
/// TPI-LLM: laws of the window, published figures beside the model.
#include "serving/home.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace orrery::serving {
namespace {

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

}  // namespace
}  // namespace orrery::serving
