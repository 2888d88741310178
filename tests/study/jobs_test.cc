// SPDX-License-Identifier: Apache-2.0
#include "study/jobs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "../simulate/builder.h"
#include "../simulate/traffic.h"
#include "graph/compose.h"
#include "machine/topology/makers.h"

namespace orrery::study {
namespace {

using simulate::NetworkModel;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// 1 GB/s per device; nodes of `node`.
machine::Machine nodes_of_devices(std::int64_t node, std::int64_t nodes) {
  machine::Machine machine =
      testing::machine_of({testing::dimension(topology::DimensionKind::switched, node),
                           testing::dimension(topology::DimensionKind::switched, nodes)});
  machine.network[0].name = "inside";
  machine.network[1].name = "outside";
  return machine;
}

Job all_reduce(const std::string& name, std::int64_t ranks,
               std::vector<std::int64_t> devices = {}) {
  testing::Gathering gathering{.groups = {{}}, .bytes = Bytes(1'000'000), .times = 3};
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    gathering.groups.front().push_back(rank);
  }
  Job job{.name = name, .workload = testing::Traffic(ranks).add(gathering).workload()};
  job.ranks = std::move(devices);
  return job;
}

JobsRun run(const JobsFile& file, const machine::Machine& machine, NetworkModel network) {
  auto result = run_jobs(file, machine, 0, {.network = network});
  EXPECT_TRUE(result) << result.error().to_string();
  return result ? std::move(*result) : JobsRun{};
}

TEST(Jobs, OnLinksOfTheirOwnTheyDoNotSlowEachOtherDown) {
  JobsFile file;
  file.jobs = {all_reduce("a", 4), all_reduce("b", 4), all_reduce("c", 4)};
  file.jobs[1].start = 123_us;
  for (const NetworkModel network : {NetworkModel::ports, NetworkModel::fifo, NetworkModel::flow}) {
    const JobsRun result = run(file, nodes_of_devices(4, 3), network);
    ASSERT_EQ(result.jobs.size(), 3U);
    for (const JobResult& job : result.jobs) {
      EXPECT_EQ(job.finish - job.start, job.alone) << job.name;
      EXPECT_EQ(job.slowdown, 1);
    }
    EXPECT_EQ(result.jobs[1].alone, result.jobs[0].alone);
  }
}

TEST(Jobs, OnOneLinkEachHasHalf) {
  // Hosts 0, 1 and 2, 3 have a leaf each; one uplink of 1 GB/s is for both jobs, which exchange
  // over it. All-reduces of 1 MB, 3 times: 2 messages of 0.5 MB each, 3 ms alone and latencies.
  machine::Machine machine =
      testing::machine_of({testing::dimension(topology::DimensionKind::switched, 4)});
  auto graph =
      topology::parse_topology("leaf_spine:leaves=2,spines=1,hosts=2,bandwidth=8Gbit/s", "");
  ASSERT_TRUE(graph) << graph.error().to_string();
  machine.wires.graph = std::make_shared<topology::LinkGraph>(std::move(*graph));
  JobsFile file;
  file.jobs = {all_reduce("a", 2, {0, 2}), all_reduce("b", 2, {1, 3})};
  const JobsRun shared = run(file, machine, NetworkModel::flow);
  EXPECT_EQ(shared.jobs[0].finish - shared.jobs[0].alone, 3_ms);
  EXPECT_EQ(shared.jobs[0].finish, shared.jobs[1].finish);
  // Inside their leaves nothing is shared.
  file.jobs = {all_reduce("a", 2, {0, 1}), all_reduce("b", 2, {2, 3})};
  EXPECT_EQ(run(file, machine, NetworkModel::flow).jobs[0].slowdown, 1);
  // One after the other neither.
  file.jobs = {all_reduce("a", 2, {0, 2}), all_reduce("b", 2, {1, 3})};
  file.jobs[1].start = 10_ms;
  const JobsRun later = run(file, machine, NetworkModel::flow);
  EXPECT_EQ(later.jobs[0].slowdown, 1);
  EXPECT_EQ(later.jobs[1].slowdown, 1);
  EXPECT_EQ(later.end, later.jobs[1].alone + 10_ms);
}

/// Tables by rank and group would grow with the square of the jobs if each had groups of its own.
TEST(Jobs, CommunicatorsOfOneNameAndSizeAreOneFamily) {
  const Job a = all_reduce("a", 2);
  const Job b = all_reduce("b", 4);
  std::vector<graph::PlacedJob> placed{{"a", &a.workload, {0, 1}, Time(0)},
                                       {"b", &a.workload, {3, 2}, Time(0)},
                                       {"c", &b.workload, {4, 5, 6, 7}, Time(0)}};
  const auto composed = graph::compose(placed, 8);
  ASSERT_TRUE(composed) << composed.error().to_string();
  const std::size_t own = a.workload.groups.size();
  EXPECT_EQ(composed->groups[0], composed->groups[1]);
  const graph::GroupIndex all = composed->groups[0][1];
  EXPECT_THAT(composed->workload.groups[*all].members.lists,
              ElementsAre(ElementsAre(0, 1), ElementsAre(3, 2)));
  EXPECT_NE(composed->groups[2][1], all);  // of four ranks
  placed[1].kinds.assign(own, 1);          // of another algorithm
  const auto apart = graph::compose(placed, 8);
  ASSERT_TRUE(apart) << apart.error().to_string();
  EXPECT_NE(apart->groups[0][1], apart->groups[1][1]);
}

TEST(Jobs, MessagesGoWhereTheirRanksHaveBeenPlaced) {
  // A pipeline of two stages of two ranks, 0 -> 2 and 1 -> 3, placed in any order: both messages of
  // 1 MB have a link of their own.
  const plan::RankLayout layout{{{plan::Axis::tp, 2}, {plan::Axis::dp, 1}, {plan::Axis::pp, 2}}};
  Job job{.name = "pipeline",
          .workload = testing::workload_of(
              layout, {{testing::compute_node("first", 1_ms),
                        testing::send("out", plan::Channel::forward, Bytes(1'000'000), {0})},
                       {testing::receive("in", plan::Channel::forward),
                        testing::compute_node("second", 1_ms, {0})}})};
  for (const std::vector<std::int64_t>& devices :
       {std::vector<std::int64_t>{0, 1, 2, 3}, {3, 0, 2, 1}, {1, 3, 0, 2}}) {
    job.ranks = devices;
    JobsFile file;
    file.jobs = {job};
    const graph::PlacedJob placed{job.name, &job.workload, devices, Time(0)};
    const auto composed = graph::compose(std::span(&placed, 1), 4);
    ASSERT_TRUE(composed) << composed.error().to_string();
    const auto sound = graph::verify(composed->workload);
    EXPECT_TRUE(sound) << sound.error().to_string();
    const machine::Machine machine =
        testing::machine_of({testing::dimension(topology::DimensionKind::switched, 4)});
    for (const NetworkModel network :
         {NetworkModel::ports, NetworkModel::fifo, NetworkModel::flow}) {
      EXPECT_EQ(run(file, machine, network).end, 3_ms + 1_us);
    }
  }
}

TEST(Jobs, ATraceOfOneJobAloneIsItsOwnRun) {
  const Job job = all_reduce("a", 4);
  const machine::Machine machine =
      testing::machine_of({testing::dimension(topology::DimensionKind::switched, 4)});
  JobsFile file;
  file.jobs = {job};
  for (const NetworkModel network : {NetworkModel::ports, NetworkModel::fifo, NetworkModel::flow}) {
    const auto own = simulate::simulate(job.workload, machine, {.network = network});
    ASSERT_TRUE(own);
    EXPECT_EQ(run(file, machine, network).jobs[0].alone, own->step_time);
  }
}

TEST(Jobs, PlacementsTakeFreeDevices) {
  JobsFile file;
  file.seed = 5;
  file.jobs = {all_reduce("a", 3), all_reduce("b", 4)};
  const auto places = [&](Placement placement) {
    for (Job& job : file.jobs) {
      job.placement = placement;
    }
    return *place(file, 8, 4);
  };
  EXPECT_THAT(places(Placement::packed),
              ElementsAre(ElementsAre(0, 1, 2), ElementsAre(3, 4, 5, 6)));
  EXPECT_THAT(places(Placement::spread),
              ElementsAre(ElementsAre(0, 4, 1), ElementsAre(2, 5, 3, 6)));
  EXPECT_THAT(places(Placement::rail_aligned),
              ElementsAre(ElementsAre(0, 4, 1), ElementsAre(5, 2, 6, 3)));
  EXPECT_EQ(places(Placement::random), places(Placement::random));
  file.jobs[1].ranks = {7, 0, 1, 2};
  EXPECT_THAT(places(Placement::packed),
              ElementsAre(ElementsAre(3, 4, 5), ElementsAre(7, 0, 1, 2)));
}

TEST(Jobs, PlacementsThatCannotBeAreNamed) {
  JobsFile file;
  file.jobs = {all_reduce("a", 6), all_reduce("b", 4)};
  EXPECT_THAT(place(file, 8, 4).error().to_string(),
              HasSubstr("b needs 4 devices, 2 of 8 are left"));
  file.jobs = {all_reduce("a", 2, {1, 1}), all_reduce("b", 2, {1, 8})};
  const std::string text = place(file, 8, 4).error().to_string();
  EXPECT_THAT(text, HasSubstr("device 1 once"));
}

TEST(Jobs, AFileHasModelsTracesAndCollectives) {
  const std::string path = ::testing::TempDir() + "/jobs.yaml";
  std::ofstream(path) << R"(
jobs:
  - {name: a, collective: all_reduce, bytes: 1 MB, devices: 4}
  - {name: a, collective: all_gather, bytes: 1 MB}
  - {name: c}
  - {name: d, collective: all_reduce, bytes: 1 MB, devices: 4, placment: spread}
)";
  const auto file = load_jobs(path, nodes_of_devices(4, 2));
  ASSERT_FALSE(file);
  const std::string text = file.error().to_string();
  EXPECT_THAT(text, HasSubstr("devices"));
  EXPECT_THAT(text, HasSubstr("`chakra` or `collective`"));
  EXPECT_THAT(text, HasSubstr("did you mean 'placement'"));
  EXPECT_THAT(text, HasSubstr("jobs.yaml:4: jobs[1].name: found 'a', expected a name of its own"));
}

}  // namespace
}  // namespace orrery::study
