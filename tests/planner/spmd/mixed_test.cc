// SPDX-License-Identifier: Apache-2.0
#include "planner/spmd/mixed.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "published.h"
#include "random_graph.h"

namespace orrery::spmd {
namespace {

MixedDevices mixed(std::vector<FlopRate> rates, const std::string& profile = "64c8m") {
  return {load_profile(profile).value(), std::move(rates)};
}

/// Rates 4, 2, 2: in proportion 1/2, 1/4, 1/4; capped at 2 alike.
TEST(MixedShares, AreInProportionUpToTheCap) {
  const std::vector<FlopRate> rates{4_TFLOPs, 2_TFLOPs, 2_TFLOPs};
  EXPECT_EQ(capped_shares(rates, 4_TFLOPs), (std::vector<double>{0.5, 0.25, 0.25}));
  const auto even = capped_shares(rates, 2_TFLOPs);
  EXPECT_DOUBLE_EQ(even[0], 1.0 / 3);
  EXPECT_DOUBLE_EQ(even[1], 1.0 / 3);
}

/// One product, its batch cut: 3 passes of 8 GFLOP; together 8 TFLOP/s in proportion, 3 ms. Even
/// shares wait for the slower device: 4 GFLOP at 2 TFLOP/s, three times, 6 ms.
TEST(MixedSearch, WhatIsDividedTakesAllRatesTogether) {
  OperatorGraph graph;
  graph.tensors = {{0, {64, 64}, Bytes(1'000'000)}, {1, {64, 64}, Bytes(1'000'000)}};
  graph.nodes = {{.kind = NodeKind::input,
                  .name = "x",
                  .outputs = {0},
                  .signatures = {{{}, {Form::gather(0)}}}},
                 {.op = "relu",
                  .name = "y",
                  .flops = Flops(8e9),
                  .inputs = {0},
                  .outputs = {1},
                  .signatures = {{{Form::gather(0)}, {Form::gather(0)}}}}};
  ASSERT_TRUE(verify(graph));
  const auto found = search_mixed(graph, mixed({6_TFLOPs, 2_TFLOPs}));
  ASSERT_TRUE(found) << found.error().to_string();
  EXPECT_EQ(found->solution.total, 3_ms);
  EXPECT_EQ(found->shares, (std::vector<double>{0.75, 0.25}));
  const Solution even = search(graph, MixedPrices(mixed({6_TFLOPs, 2_TFLOPs}), {0.5, 0.5})).value();
  EXPECT_EQ(even.total, 6_ms);
}

TEST(MixedSearch, EqualDevicesShareAlike) {
  const OperatorGraph graph = model("Rmoe", 8, 2);
  const auto found = search_mixed(graph, mixed(std::vector<FlopRate>(8, 4_TFLOPs)));
  ASSERT_TRUE(found);
  for (const double share : found->shares) {
    EXPECT_DOUBLE_EQ(share, 0.125);
  }
}

/// No shares are better than those searched: 40 random ones of each of 150 random graphs, with up
/// to four rates. A picosecond a node may be lost to rounding.
TEST(MixedSearch, NoOtherSharesAreFaster) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> part(0.02, 1);
  int solved = 0;
  for (unsigned seed = 0; seed < 150; ++seed) {
    const OperatorGraph graph = random_graph(seed, 3 + static_cast<int>(seed % 7));
    std::vector<FlopRate> rates;
    for (std::int64_t i = 0; i < kDevices; ++i) {
      rates.emplace_back(part(random) * 1e13);
    }
    const MixedDevices devices = mixed(rates, seed % 2 == 0 ? "64c8m" : "2m_10g");
    const auto best = search_mixed(graph, devices);
    if (!best) {
      continue;
    }
    ++solved;
    EXPECT_NEAR(std::accumulate(best->shares.begin(), best->shares.end(), 0.0), 1, 1e-12);
    const Time slack(static_cast<std::int64_t>(12 * graph.nodes.size()));
    for (int trial = 0; trial < 40; ++trial) {
      std::vector<double> shares;
      for (std::int64_t i = 0; i < kDevices; ++i) {
        shares.push_back(part(random));
      }
      const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
      for (double& share : shares) {
        share /= sum;
      }
      const Solution other = search(graph, MixedPrices(devices, shares)).value();
      EXPECT_LE(best->solution.total, other.total + slack) << seed;
    }
  }
  EXPECT_GT(solved, 100);
}

/// HAP's own scheme under the same cost, with exact halves: the best program at some shares, the
/// best shares of that program (of which some cap's are, mixed.h), until neither gains.
Time in_turns(const OperatorGraph& graph, const MixedDevices& devices, std::vector<double> shares) {
  Time best = Time::max();
  while (true) {
    const Solution found = search(graph, MixedPrices(devices, shares)).value();
    const Time before = best;
    best = std::min(best, found.total);
    for (const FlopRate cap : devices.rates) {
      const std::vector<double> capped = capped_shares(devices.rates, cap);
      const Time time = replay(graph, found.strategy, MixedPrices(devices, capped)).value().total;
      if (time < best) {
        best = time;
        shares = capped;
      }
    }
    if (best == before) {
      return best;
    }
  }
}

/// HAP's models on its sorts of clusters, half of the devices slower; it begins in proportion.
TEST(MixedSearch, IsNoDearerThanProgramsAndSharesInTurn) {
  for (const char* name : {"Rmoe", "Rswitch", "Vmoe", "Vswitch"}) {
    for (const char* profile : {"64c8m", "nvl8", "2m_10g"}) {
      for (const double slower : {0.2, 0.6}) {
        const OperatorGraph graph = model(name, 8, 4);
        std::vector<FlopRate> rates(4, 12_TFLOPs);
        rates.insert(rates.end(), 4, 12_TFLOPs * slower);
        const MixedDevices devices = mixed(rates, profile);
        const Time turns = in_turns(graph, devices, capped_shares(rates, 12_TFLOPs));
        const Time together = search_mixed(graph, devices).value().solution.total;
        EXPECT_LE(together, turns) << name << " " << profile << " " << slower;
      }
    }
  }
}

}  // namespace
}  // namespace orrery::spmd
