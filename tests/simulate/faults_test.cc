// SPDX-License-Identifier: Apache-2.0
// Runs in which something breaks, by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "builder.h"
#include "simulate/simulate.h"
#include "traffic.h"

namespace orrery::simulate {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace): the builders of this test
using ::testing::HasSubstr;

Result<Timeline> run(const graph::Workload& workload, const machine::Machine& machine,
                     const std::string& faults, NetworkModel network = NetworkModel::ports) {
  auto plan = faults::parse_faults(faults, "faults.yaml");
  EXPECT_TRUE(plan) << plan.error().to_string();
  return simulate(workload, machine, {.faults = std::move(*plan), .network = network});
}

Time time_of(const Result<Timeline>& timeline) {
  EXPECT_TRUE(timeline) << timeline.error().to_string();
  EXPECT_FALSE(timeline->stopped) << timeline->stopped->why.to_string();
  return timeline->step_time;
}

machine::Machine switched(std::int64_t ranks) {
  return machine_of({dimension(topology::DimensionKind::switched, ranks)});
}

/// Two ranks: 1 ms of work, an all-reduce of 1 MB (1 ms + 2 us), 1 ms.
graph::Workload reduction() {
  return workload_of(
      {{{plan::Axis::tp, 2}, {plan::Axis::dp, 1}, {plan::Axis::pp, 1}}},
      {{compute_node("a", 1_ms), collective_node("reduce", plan::Axis::tp, Bytes(1'000'000), {0}),
        compute_node("b", 1_ms, {1})}});
}
constexpr Time kHealthy = 3_ms + 2_us;

TEST(SimulatedFaults, AStragglerLengthensItsComputeByItsFactor) {
  // Both kernels of rank 1 take 2.5 ms, and rank 0 waits.
  const auto timeline = run(reduction(), switched(2),
                            "faults: [{kind: straggler, ranks: [1], factor: 2.5, at: 0 s}]");
  EXPECT_EQ(time_of(timeline), kHealthy + 3_ms);
  EXPECT_EQ(timeline->critical_rank, 1);
  EXPECT_EQ(timeline->time("forward"), 5_ms);
  EXPECT_EQ(timeline->by_rank[0].time[0], 2_ms);
}

TEST(SimulatedFaults, ForATimeItSlowsWhatRunsThen) {
  // From 0.5 to 1.25 ms at a third of the speed: 0.5 + 0.75 / 3 = 0.75 of 1 ms are done at 1.25.
  const auto timeline =
      run(reduction(), switched(2),
          "faults: [{kind: straggler, ranks: [0], factor: 3, at: 500 us, lasts: 750 us}]");
  EXPECT_EQ(time_of(timeline), kHealthy + 500_us);
}

TEST(SimulatedFaults, ANodeThatComesBackGoesOnWhereItWas) {
  const auto timeline =
      run(reduction(), switched(2), "faults: [{kind: node, nodes: [0], at: 500 us, lasts: 7 ms}]");
  EXPECT_EQ(time_of(timeline), kHealthy + 7_ms);
  Time sum{0};
  for (const Time part : timeline->breakdown.time) {
    sum += part;
  }
  EXPECT_EQ(sum, timeline->step_time);
}

TEST(SimulatedFaults, ARankThatIsGoneEntersNothing) {
  const graph::Workload workload =
      workload_of({{{plan::Axis::tp, 2}, {plan::Axis::dp, 1}, {plan::Axis::pp, 1}}},
                  {{collective_node("first", plan::Axis::tp, Bytes(1'000'000)),
                    collective_node("second", plan::Axis::tp, Bytes(1'000'000), {0})}});
  // Gone at 0.5 ms, while the first (1 ms + 2 us) is in flight; it does not enter the second before
  // 4.5 ms. Ports: what is on the wire arrives.
  const auto timeline =
      run(workload, switched(2), "faults: [{kind: node, nodes: [0], at: 500 us, lasts: 4 ms}]");
  EXPECT_EQ(time_of(timeline), 4500_us + 1_ms + 2_us);
}

TEST(SimulatedFaults, ForGoodTheRunStopsAndSaysWhy) {
  machine::Machine machine = machine_of({dimension(topology::DimensionKind::switched, 1),
                                         dimension(topology::DimensionKind::switched, 2)});
  machine.network[0].name = "inside";
  for (const NetworkModel network : {NetworkModel::ports, NetworkModel::fifo, NetworkModel::flow}) {
    const auto timeline =
        run(reduction(), machine, "faults: [{kind: node, nodes: [1], at: 500 us}]", network);
    ASSERT_TRUE(timeline) << timeline.error().to_string();
    ASSERT_TRUE(timeline->stopped);
    EXPECT_EQ(timeline->stopped->at, 1_ms);  // rank 0 comes to the collective
    const std::string why = timeline->stopped->why.to_string();
    EXPECT_THAT(why, HasSubstr("node 1 is lost at 500 us"));
    EXPECT_THAT(why, HasSubstr("rank 0"));
  }
}

TEST(SimulatedFaults, ALinkAtHalfIsHalfAsFastFromThen) {
  // 1 MB at 1 GB/s: 0.5 ms are over when the rest takes 1 ms. 1 us of latency.
  const graph::Workload workload = Traffic(2).add({0, 1, Bytes(1'000'000)}).workload();
  const std::string faults =
      "faults: [{kind: link, links: [rank0->switch], bandwidth_share: 0.5, at: 500 us}]";
  EXPECT_EQ(time_of(run(workload, switched(2), faults, NetworkModel::flow)), 1500_us + 1_us);
  // The other direction carries nothing.
  const std::string other =
      "faults: [{kind: link, links: [switch->rank0], bandwidth_share: 0, at: 0 s}]";
  EXPECT_EQ(time_of(run(workload, switched(2), other, NetworkModel::flow)), 1_ms + 1_us);
}

TEST(SimulatedFaults, OtherNetworksRefuseFaultsOfLinks) {
  const graph::Workload workload = Traffic(2).add({0, 1, Bytes(1'000'000)}).workload();
  for (const NetworkModel network : {NetworkModel::ports, NetworkModel::fifo}) {
    const auto timeline = run(
        workload, switched(2),
        "faults: [{kind: link, links: [rank0->switch], bandwidth_share: 0.5, at: 0 s}]", network);
    ASSERT_FALSE(timeline);
    EXPECT_THAT(timeline.error().to_string(), HasSubstr("do not change while it runs"));
  }
}

/// Every pair has a link of its own, and no message meets the one before: where links are shared, a
/// delay may keep two apart that would have met, and the run ends earlier.
RC_GTEST_PROP(SimulatedFaults, NoStragglerMakesARunFaster, ()) {
  const auto stages = *rc::gen::inRange<std::int64_t>(1, 4);
  std::vector<std::vector<graph::Node>> nodes;
  for (std::int64_t stage = 0; stage < stages; ++stage) {
    std::vector<graph::Node>& list = nodes.emplace_back();
    if (stage > 0) {
      list.push_back(receive("in", plan::Channel::forward));
    }
    list.push_back(compute_node("work", Time(1'000'000) * *rc::gen::inRange(2, 1000),
                                stage > 0 ? std::vector<int>{0} : std::vector<int>{}));
    list.push_back(collective_node("reduce", plan::Axis::tp, Bytes(100'000),
                                   {static_cast<int>(list.size()) - 1}));
    if (stage + 1 < stages) {
      list.push_back(
          send("out", plan::Channel::forward, Bytes(1000), {static_cast<int>(list.size()) - 1}));
    }
  }
  const graph::Workload workload =
      workload_of({{{plan::Axis::tp, 2}, {plan::Axis::dp, 1}, {plan::Axis::pp, stages}}}, nodes, 5);
  const machine::Machine machine =
      machine_of({dimension(topology::DimensionKind::fully_connected, 2 * stages)});
  const auto healthy = simulate(workload, machine);
  const auto factor = 1 + *rc::gen::inRange(0, 40) / 10.0;
  const auto timeline = run(workload, machine,
                            "{seed: " + std::to_string(*rc::gen::inRange(0, 1000)) +
                                ", until: 1 s, faults: [{kind: straggler, ranks: [all], factor: " +
                                std::to_string(factor) + ", mtbf_hours: 1e-6, lasts: 1 ms}]}");
  RC_ASSERT(healthy && timeline && !timeline->stopped);
  RC_ASSERT(timeline->step_time >= healthy->step_time);
  const auto none =
      run(workload, machine, "faults: [{kind: straggler, ranks: [all], factor: 1, at: 1 us}]");
  RC_ASSERT(none && none->step_time == healthy->step_time);
}

}  // namespace
}  // namespace orrery::simulate
