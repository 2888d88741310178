// SPDX-License-Identifier: Apache-2.0
/// A collective algorithm, a network and a schedule that are not in the library, as
/// docs/howto/ says how to add them: algorithm_star.cc, which CMake lists; ideal_links.h with its
/// row below; a row below. Links of 1 GB/s and 1 us a hop: 1 MB takes 1 ms + 1 us.
#include <gtest/gtest.h>

#include "../simulate/builder.h"
#include "../simulate/traffic.h"
#include "../workload/parallel/cases.h"
#include "../workload/plan/pipeline_executor.h"
#include "collective/algorithm.h"
#include "collective/sweep.h"
#include "ideal_links.h"
#include "simulate/run.h"
#include "workload/plan/schedule_row.h"

namespace orrery::simulate {

std::vector<NetworkRow> network_list() {
  std::vector<NetworkRow> rows = shipped_networks();
  rows.push_back(message_network<network::IdealLinks>(
      {.name = "ideal", .sentence = "every message has all of its links to itself"}));
  return rows;
}

}  // namespace orrery::simulate

namespace orrery::plan {

/// Zhuang et al., On Optimizing the Communication of Model Parallelism, MLSys 2023, section 4.
std::vector<ScheduleRow> schedule_list() {
  std::vector<ScheduleRow> rows = shipped_schedules();
  rows.push_back({.name = "eager-1f1b",
                  .sentence = "1F1B with twice the warm-up, so that messages have time to arrive",
                  .warmup = [](const PipelineShape& shape, std::int64_t stage) {
                    return 2 * (shape.stages - 1 - stage);
                  }});
  return rows;
}

}  // namespace orrery::plan

namespace orrery {
namespace {

using collective::CollectiveAlgorithm;
using simulate::NetworkModel;
using testing::dimension;
using testing::machine_of;
using testing::Traffic;

constexpr Bytes kMegabyte{1'000'000};

template <class E>
E named(std::string_view name) {
  const auto value = value_of<E>(name);
  EXPECT_TRUE(value) << name << " is none of " << all_names<E>();
  return value.value_or(E{});
}

Time time_on(std::string_view network, const graph::Workload& workload,
             const machine::Machine& machine, std::string_view algorithm = "auto") {
  simulate::SimulateOptions options;
  options.network = named<NetworkModel>(network);
  options.algorithms.fill(workload.groups.size(), named<CollectiveAlgorithm>(algorithm));
  const auto timeline = simulate::simulate(workload, machine, options);
  EXPECT_TRUE(timeline) << timeline.error().to_string();
  return timeline ? timeline->step_time : Time(0);
}

TEST(Toys, StandAtTheEndOfTheNamesThatHelpTextsAndMistakesTell) {
  EXPECT_TRUE(all_names<CollectiveAlgorithm>().ends_with("custom_trtllm, star"));
  EXPECT_EQ(all_names<NetworkModel>(), "ports, fifo, flow, flit, packet, ideal");
  EXPECT_THAT(all_names<plan::Schedule>(),
              ::testing::EndsWith("dualpipe, eager-1f1b, v-half, v-min"));  // by name
  const auto plan = plan::parse_plan(*parse_config(
      "pp: 2\nschedule: eager-1f1b\ndp_algorithm: star\n", "plan.yaml", ConfigSyntax::yaml));
  ASSERT_TRUE(plan) << plan.error().to_string();
  EXPECT_EQ(name_of(plan->schedule), "eager-1f1b");
  EXPECT_EQ(name_of(plan->dp_algorithm), "star");
}

TEST(ToyAlgorithm, StarTakesThreeBuffersInAndThreeOutOfItsFirstMember) {
  // 4 members: 3 ms into member 0 + 1 us, 3 ms out + 1 us; in closed form, and message by message.
  const machine::Machine machine = machine_of({dimension(topology::DimensionKind::switched, 4)});
  const auto star = named<CollectiveAlgorithm>("star");
  const Time expected = 6'002_us;
  EXPECT_EQ(collective::collective_time(graph::CollectiveKind::all_reduce, kMegabyte, {{0, 4, 1}},
                                        star, machine),
            expected);
  const graph::Workload workload =
      Traffic(4).add({.groups = {{0, 1, 2, 3}}, .bytes = kMegabyte}).workload();
  for (const std::string_view network : {"ports", "fifo", "flow"}) {
    EXPECT_EQ(time_on(network, workload, machine, "star"), expected) << network;
  }
  EXPECT_FALSE(collective::performs(graph::CollectiveKind::all_gather, star, {{0, 4, 1}}, machine));
}

TEST(ToyNetwork, IdealGivesEveryMessageItsLinksAlone) {
  // Two senders into one port: 2 ms where it is shared, 1 ms as if it were not.
  const machine::Machine machine = machine_of({dimension(topology::DimensionKind::switched, 3)});
  const graph::Workload workload = Traffic(3)
                                       .add({.from = 0, .to = 2, .bytes = kMegabyte})
                                       .add({.from = 1, .to = 2, .bytes = kMegabyte})
                                       .workload();
  EXPECT_EQ(time_on("flow", workload, machine), 2'001_us);
  EXPECT_EQ(time_on("ideal", workload, machine), 1'001_us);
}

TEST(ToyNetwork, IdealStarDoesNotWaitForItsFirstMember) {
  // 1 ms + 1 us to member 0, all at once, and back.
  const machine::Machine machine = machine_of({dimension(topology::DimensionKind::switched, 4)});
  const graph::Workload workload =
      Traffic(4).add({.groups = {{0, 1, 2, 3}}, .bytes = kMegabyte}).workload();
  EXPECT_EQ(time_on("ideal", workload, machine, "star"), 2'002_us);
}

TEST(ToySchedule, EagerWarmsUpTwiceAsLongAndIsAsFastWithoutMessageTime) {
  // p = 3, m = 8: stage 0 begins with 2 (p-1) + 1 = 5 forwards, all of which are in flight; 1F1B
  // with 3. Messages in no time: both take 2 m + 2 (p-1) passes.
  const plan::PipelineShape shape{named<plan::Schedule>("eager-1f1b"), 3, 1, 8};
  EXPECT_EQ(plan::warmup(shape, 0), 4);
  EXPECT_EQ(testing::most_in_flight(shape, 0), 5);
  EXPECT_EQ(testing::most_in_flight({plan::Schedule::one_f_one_b, 3, 1, 8}, 0), 3);
  testing::PipelineExecutor executor(shape);
  EXPECT_TRUE(executor.run());
  EXPECT_EQ(executor.makespan(), 2 * 8 + 2 * 2);
}

TEST(ToySchedule, EagerHidesTheLatencyOfHopsInAPlanThatRuns) {
  // 100 ms a hop is longer than a stage's pass (the step takes 0.23 s without). Stage 0 has 2
  // microbatches in flight with 1F1B and 3 with eager, and each is on its way for 200 ms, in which
  // others can follow: a message's latency holds no link of the flow model.
  const auto time_of = [](std::string_view schedule) {
    plan::Plan plan;
    plan.pp = 2;
    plan.microbatch = 1;
    plan.global_batch = 8;
    plan.schedule = named<plan::Schedule>(schedule);
    plan.overlap_p2p = true;
    topology::NetworkDimension link = dimension(topology::DimensionKind::switched, 2);
    link.latency = 100_ms;
    return time_on("flow", cases::lowered(cases::small_gpt(4), plan), machine_of({link}));
  };
  EXPECT_LT(time_of("eager-1f1b"), time_of("1f1b"));
}

}  // namespace
}  // namespace orrery
