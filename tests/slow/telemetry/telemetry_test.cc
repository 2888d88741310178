// SPDX-License-Identifier: Apache-2.0
// Faults of a simulated run are found in the telemetry that its ranks would have recorded, as often
// as in a reference calculation with the same thresholds (derived; those of tests/diagnose).
#include "report/telemetry.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "../../simulate/builder.h"
#include "../../simulate/traffic.h"
#include "diagnose/diagnose.h"
#include "machine/topology/makers.h"
#include "study/workload_run.h"

namespace orrery::report {
namespace {

using diagnose::Syndrome;

constexpr int kTrials = 40;
constexpr double kNoise = 0.15;
/// Luck of 40 trials: 3 standard errors of a rate of 0.5.
constexpr double kOfLuck = 0.24;

/// 20 exchanges of 1 MB between all pairs, each pair with links of its own.
study::WorkloadRun exchanges(std::int64_t ranks, const std::string& faults) {
  machine::Machine machine =
      testing::machine_of({testing::dimension(topology::DimensionKind::switched, ranks)});
  auto graph = topology::parse_topology(
      "flattened_butterfly:shape=" + std::to_string(ranks) + ",hosts=0", "");
  EXPECT_TRUE(graph) << graph.error().to_string();
  machine.wires.graph = std::make_shared<topology::LinkGraph>(std::move(*graph));
  testing::Gathering gathering{.groups = {{}},
                               .kind = graph::CollectiveKind::all_to_all,
                               .bytes = Bytes(ranks * 1'000'000),
                               .times = 20};
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    gathering.groups.front().push_back(rank);
  }
  auto plan = faults::parse_faults("faults: [" + faults + "]", "faults.yaml");
  EXPECT_TRUE(plan) << plan.error().to_string();
  auto run =
      study::run_workload("exchanges", testing::Traffic(ranks).add(gathering).workload(), machine,
                          {.record_spans = true,
                           .record_messages = true,
                           .faults = std::move(*plan),
                           .network = simulate::NetworkModel::flow});
  EXPECT_TRUE(run) << run.error().to_string();
  return std::move(*run);
}

std::string link(double slower, const std::string& names) {
  return "{kind: link, links: [" + names +
         "], at: 0 s, bandwidth_share: " + std::to_string(1 / slower) + "}";
}

/// The links out of rank 3, or into it.
std::string links_of(std::int64_t ranks, bool out) {
  std::string names;
  for (std::int64_t other = 0; other < ranks; ++other) {
    if (other != 3) {
      const std::string a = "host3";
      const std::string b = "host" + std::to_string(other);
      names += (names.empty() ? "" : ", ") + (out ? a + "->" + b : b + "->" + a);
    }
  }
  return names;
}

/// Share of the trials that find `syndrome` of `ranks`, and nothing else; none: nothing at all.
double rate(const study::WorkloadRun& run, std::optional<Syndrome> syndrome,
            const std::vector<std::int64_t>& ranks) {
  int right = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    const auto telemetry = diagnose::parse_telemetry(
        telemetry_text(run, {kNoise, static_cast<std::uint64_t>(trial)}), "telemetry.jsonl");
    EXPECT_TRUE(telemetry) << telemetry.error().to_string();
    const auto findings = diagnose::diagnose(*telemetry, {}).findings;
    right += syndrome ? findings.size() == 1 && findings[0].syndrome == *syndrome &&
                            findings[0].ranks == ranks
                      : findings.empty();
  }
  const double share = static_cast<double>(right) / kTrials;
  fmt::print("{} {}: found in {:.2f} of {} trials\n", run.machine.wires.graph->name,
             syndrome ? name_of(*syndrome) : "nothing", share, kTrials);
  return share;
}

TEST(SimulatedTelemetry, NothingIsFoundWhereNothingIs) {
  EXPECT_EQ(rate(exchanges(8, ""), std::nullopt, {}), 1);
}

TEST(SimulatedTelemetry, SlowSendersAndReceivers) {
  const std::string out = links_of(8, true);
  const std::string in = links_of(8, false);
  EXPECT_NEAR(rate(exchanges(8, link(1.1, out)), Syndrome::slow_sender, {3}), 0.17, kOfLuck);
  EXPECT_NEAR(rate(exchanges(8, link(1.1, in)), Syndrome::slow_receiver, {3}), 0.12, kOfLuck);
  EXPECT_GE(rate(exchanges(8, link(1.2, out)), Syndrome::slow_sender, {3}), 0.97);
  EXPECT_GE(rate(exchanges(8, link(1.2, in)), Syndrome::slow_receiver, {3}), 0.97);
}

TEST(SimulatedTelemetry, SlowLinks) {
  EXPECT_LE(rate(exchanges(8, link(1.1, "host3->host5")), Syndrome::slow_link, {3, 5}), 0.08);
  EXPECT_NEAR(rate(exchanges(8, link(1.2, "host3->host5")), Syndrome::slow_link, {3, 5}), 0.17,
              kOfLuck);
  EXPECT_NEAR(rate(exchanges(8, link(1.3, "host3->host5")), Syndrome::slow_link, {3, 5}), 0.78,
              kOfLuck);
  EXPECT_EQ(rate(exchanges(8, link(1.5, "host3->host5")), Syndrome::slow_link, {3, 5}), 1);
}

TEST(SimulatedTelemetry, OfThirtyTwoRanksOneTenthIsEnough) {
  EXPECT_EQ(rate(exchanges(32, link(1.1, links_of(32, true))), Syndrome::slow_sender, {3}), 1);
}

TEST(SimulatedTelemetry, StragglersAndRanksThatAreGone) {
  // Four ranks compute 1 ms and add up, ten times.
  const graph::Workload workload = testing::workload_of(
      {{{plan::Axis::tp, 4}, {plan::Axis::dp, 1}, {plan::Axis::pp, 1}}},
      {{testing::compute_node("work", 1_ms),
        testing::collective_node("reduce", plan::Axis::tp, Bytes(100'000), {0})}},
      10);
  const machine::Machine machine =
      testing::machine_of({testing::dimension(topology::DimensionKind::switched, 1),
                           testing::dimension(topology::DimensionKind::switched, 4)});
  const auto findings = [&](const std::string& faults) {
    auto plan = faults::parse_faults("faults: [" + faults + "]", "faults.yaml");
    const auto run = study::run_workload("steps", workload, machine,
                                         {.record_spans = true, .faults = std::move(*plan)});
    EXPECT_TRUE(run) << run.error().to_string();
    const auto telemetry = diagnose::parse_telemetry(telemetry_text(*run, {}), "telemetry.jsonl");
    EXPECT_TRUE(telemetry) << telemetry.error().to_string();
    return diagnose::diagnose(*telemetry, {}).findings;
  };
  EXPECT_TRUE(findings("").empty());
  const auto slow = findings("{kind: straggler, ranks: [2], factor: 1.5, at: 0 s}");
  ASSERT_EQ(slow.size(), 1U);
  EXPECT_EQ(slow[0].syndrome, Syndrome::straggler);
  EXPECT_THAT(slow[0].ranks, ::testing::ElementsAre(2));
  const auto gone = findings("{kind: node, nodes: [1], at: 5 ms}");
  ASSERT_EQ(gone.size(), 1U);
  EXPECT_EQ(gone[0].syndrome, Syndrome::missing_rank);
  EXPECT_THAT(gone[0].ranks, ::testing::ElementsAre(1));
}

}  // namespace
}  // namespace orrery::report
