// SPDX-License-Identifier: Apache-2.0
#include "planner/spmd/search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "planner/spmd/fixed.h"
#include "planner/spmd/signatures.h"
#include "published.h"

namespace orrery::spmd {
namespace {

constexpr double kRelative = 1e-6;

TEST(Search, HasEveryPublishedOptimum) {
  const auto table = load_csv(published("optimum.csv"));
  ASSERT_TRUE(table);
  ASSERT_EQ(table->rows.size(), 62U);
  for (const CsvRow& cells : table->rows) {
    const PublishedRow row(*table, cells);
    SCOPED_TRACE(table->where(cells));
    const OperatorGraph graph = model(row["model"], row.count("gpus"), row.count("layers"));
    EXPECT_EQ(graph.parameters(), row.count("parameters"));
    EXPECT_EQ(graph.forward_flops().value(), row.number("forward_flops"));
    const double expected = row.number("optimum_s");
    const double found = optimum(
        graph, setting(row.count("gpus"), row["bandwidth_set"], overlap_named(row["overlap"])));
    EXPECT_NEAR(found, expected, kRelative * expected);
  }
}

TEST(Search, NeedsNoUnsoundSignature) {
  const auto sound = [](const Node& node, const Signature& signature) {
    return is_sound(node.op, signature);
  };
  for (const char* name : {"Rmoe", "Rswitch", "Vmoe", "Vswitch"}) {
    for (const char* profile : {"64c8m", "4c4m", "nvl8", "2m_10g"}) {
      const OperatorGraph graph = model(name, 8, 8);
      EXPECT_EQ(optimum(graph, setting(8, profile)),
                optimum(graph, setting(8, profile), {.allowed = sound}));
    }
  }
}

TEST(Search, SaysWhenNothingCanBeCounted) {
  const OperatorGraph graph = model("Rmoe", 65536, 4096);
  const auto found = search(graph, PublishedPrices(setting(65536, "2m_8g")));
  ASSERT_FALSE(found);
  EXPECT_THAT(found.error().to_string(), ::testing::HasSubstr("106 days"));
}

TEST(Search, HasEveryPublishedFixedStrategyAndIsNeverSlower) {
  const auto table = load_csv(published("fixed_strategies.csv"));
  ASSERT_TRUE(table);
  ASSERT_EQ(table->rows.size(), 64U);
  for (const CsvRow& cells : table->rows) {
    const PublishedRow row(*table, cells);
    SCOPED_TRACE(table->where(cells));
    const OperatorGraph graph = model(row["model"], row.count("gpus"), row.count("layers"));
    const auto cost = setting(row.count("gpus"), row["bandwidth_set"]);
    const std::string name = row["strategy"];
    const auto strategy = value_of<FixedStrategy>(name).value_or(FixedStrategy::fsdp);
    ASSERT_EQ(name_of(strategy), name);
    const double expected = row.number("time_s");
    const double found = optimum(graph, cost, {.allowed = restriction(strategy)});
    EXPECT_NEAR(found, expected, kRelative * expected);
    EXPECT_LE(optimum(graph, cost), found);
  }
}

TEST(Search, ReturnsAStrategyThatTakesItsTime) {
  for (const char* name : {"Rmoe", "Rswitch", "Vmoe", "Vswitch"}) {
    for (const std::int64_t layers : {1, 2, 5, 8, 40, 96}) {
      for (const Overlap overlap : {Overlap::none, Overlap::forward, Overlap::both}) {
        const OperatorGraph graph = model(name, 8, layers);
        const PublishedPrices prices(setting(8, "64c8m", overlap));
        const Solution solution = search(graph, prices).value();
        const auto cost = replay(graph, solution.strategy, prices);
        ASSERT_TRUE(cost) << cost.error().to_string();
        EXPECT_EQ(cost->total, solution.total) << name << " " << layers;
      }
    }
  }
}

void skipping_changes_nothing(const OperatorGraph& graph) {
  for (const Overlap overlap : {Overlap::none, Overlap::forward, Overlap::both}) {
    const PublishedPrices prices(setting(32, "2m_10g", overlap));
    const Solution skipped = search(graph, prices).value();
    const Solution all = search(graph, prices, {.skip_periods = false}).value();
    EXPECT_EQ(skipped.total, all.total) << graph.model << " " << graph.layers;
    EXPECT_EQ(all.counts.skipped_periods, 0);
    EXPECT_GT(skipped.counts.skipped_periods, graph.layers >= 24 ? 4 : -1);
  }
}

TEST(Search, SkippingPeriodsChangesNothing) {
  for (const char* name : {"Rmoe", "Vswitch"}) {
    for (const std::int64_t layers : {8, 9, 24}) {
      skipping_changes_nothing(model(name, 32, layers));
    }
  }
}

TEST(Search, IsAffineInDepth) {
  // Two layers more of Rmoe take 0.573653760 s more, to the picosecond, at any depth.
  const auto at = [](std::int64_t layers) {
    const PublishedPrices prices(setting(8, "64c8m"));
    return search(model("Rmoe", 8, layers), prices).value().total;
  };
  const Time step = at(6) - at(4);
  EXPECT_NEAR(to_seconds(step), 0.573653760, 1e-9);
  for (const std::int64_t layers : {8, 16, 48, 200}) {
    EXPECT_EQ(at(layers) - at(4), (layers - 4) / 2 * step);
  }
}

constexpr std::array kBandwidths{&Profile::all_gather, &Profile::all_reduce,
                                 &Profile::reduce_scatter, &Profile::all_to_all};

void more_bandwidth_is_never_slower(const OperatorGraph& graph, const char* profile) {
  double before = 0;
  for (const Overlap overlap : {Overlap::both, Overlap::forward, Overlap::none}) {
    const auto cost = setting(8, profile, overlap);
    const double time = optimum(graph, cost);
    EXPECT_GE(time, before);
    before = time;
    for (Bandwidth Profile::*const bandwidth : kBandwidths) {
      auto faster = cost;
      faster.profile.*bandwidth = 1.5 * (cost.profile.*bandwidth);
      EXPECT_LE(optimum(graph, faster), time);
    }
  }
}

TEST(Search, LessOverlapIsNeverFasterAndMoreBandwidthNeverSlower) {
  for (const char* name : {"Rswitch", "Vmoe"}) {
    for (const char* profile : {"4c4m", "nvl8", "2m_8g"}) {
      more_bandwidth_is_never_slower(model(name, 8, 4), profile);
    }
  }
}

TEST(Search, OneDeviceOnAFreeNetworkComputesSixTimesForwardLessTheLastBackward) {
  // Two halves at full cost, each forward and twice that backward; the published cost leaves out
  // the last stage's backward on the second half. Whatever the last stage is, the total is then (6
  // sum - 2 last) / rate, so the fastest ends in the longest stage that it can.
  const OperatorGraph graph = model("Vmoe", 1, 4);
  for (const Overlap overlap : {Overlap::none, Overlap::forward, Overlap::both}) {
    auto cost = setting(1, "64c8m", overlap);
    cost.collective_latency = Time(0);
    for (Bandwidth Profile::*const bandwidth : kBandwidths) {
      cost.profile.*bandwidth = Bandwidth(1e30);
    }
    const PublishedPrices prices(cost);
    const Solution solution = search(graph, prices).value();
    Flops last(0);
    for (const Computation& computation : solution.strategy.stages.back().computations) {
      last += graph.nodes.at(static_cast<std::size_t>(computation.node)).flops;
    }
    const double expected =
        (6 * graph.forward_flops() - 2 * last).value() / cost.profile.device_flops.value();
    EXPECT_NEAR(to_seconds(solution.total), expected, 1e-9);
  }
}

TEST(Search, SaysWhichNodeHasNoSignatureLeft) {
  const OperatorGraph graph = model("Rmoe", 8, 2);
  const PublishedPrices prices(setting(8, "64c8m"));
  const auto none =
      search(graph, prices,
             {.allowed = [](const Node& node, const Signature&) { return node.name != "relu"; }});
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().to_string(), ::testing::HasSubstr("(relu) has no signature"));
}

}  // namespace
}  // namespace orrery::spmd
