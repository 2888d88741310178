// SPDX-License-Identifier: Apache-2.0
#include "machine/network/flows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <fstream>

#include "base/csv.h"
#include "base/file.h"
#include "machine/network/traffic.h"
#include "machine/topology/makers.h"
#include "machine/topology/read.h"

namespace orrery::network {
namespace {

using topology::LinkGraph;
using topology::Router;
using topology::Routing;

LinkGraph made(const std::string& spec) {
  auto graph = topology::parse_topology(spec, "--topology");
  EXPECT_TRUE(graph) << spec;
  return std::move(*graph);
}

FlowRun run_on(const LinkGraph& graph, Routing routing, const std::vector<FlowRequest>& flows,
               std::uint64_t seed = 0) {
  Router router(graph, routing, seed);
  auto run = run_flows(router, flows);
  EXPECT_TRUE(run) << (run ? "" : run.error().to_string());
  return std::move(*run);
}

class SimGrid : public ::testing::TestWithParam<const char*> {};

TEST_P(SimGrid, FinishTimesAreItsOwn) {
  const std::string path =
      std::string(ORRERY_SOURCE_DIR) + "/tests/machine/network/simgrid/" + GetParam();
  const auto graph = topology::load_topology(path + ".xml", "--topology");
  ASSERT_TRUE(graph) << graph.error().to_string();
  const auto flows = load_flows(path + ".csv", *graph);
  ASSERT_TRUE(flows) << flows.error().to_string();
  const auto table = load_csv(path + ".csv");
  ASSERT_TRUE(table);
  const FlowRun run = run_on(*graph, Routing::automatic, *flows);
  const std::size_t column = *table->column("finish_s");
  for (std::size_t f = 0; f < flows->size(); ++f) {
    const double expected = std::stod(table->rows[f].cells[column]);
    // SimGrid stops within its precision of 1e-9 s (surf/precision) of an end.
    EXPECT_NEAR(to_seconds(run.finish[f]), expected, 1e-9 + 1e-9 * expected) << "flow " << f;
  }
}

INSTANTIATE_TEST_SUITE_P(All, SimGrid,
                         ::testing::Values("explicit101", "explicit102", "explicit107",
                                           "explicit113", "fattree16", "fattree64", "torus16",
                                           "torus27", "dragonfly72", "dragonfly_small",
                                           "fat_shared", "fatpar", "fatpar3", "torus422",
                                           "torus_shared"));

TEST(Flows, PortsAndUplinksChosenJobByJobGiveAJobAllOfItsNic) {
  // As examples/c4: 4 jobs join node j of two pods; ports 8 side + j of each pod, left 0 to 3,
  // right 4 to 7; leaves of 4 ports and 4 uplinks. Every port sends 1.25 GB at 12.5 GB/s: 100 ms,
  // where greedy finds an uplink for each. With both sides of a NIC towards one side the far port
  // has two flows: 200 ms.
  const LinkGraph graph = made("clos:down=4x2x2,up=1x4x4,parallel=1x1x1,latency=0us");
  for (const bool matched : {true, false}) {
    std::vector<FlowRequest> flows;
    for (std::int32_t job = 0; job < 4; ++job) {
      for (std::int32_t side = 0; side < 2; ++side) {
        for (std::int32_t pod = 0; pod < 2; ++pod) {
          flows.push_back({.source = 8 * pod + 4 * side + job,
                           .target = 8 * (1 - pod) + (matched ? 4 * side : 0) + job,
                           .bytes = Bytes(1'250'000'000),
                           .start = Time(job)});
        }
      }
    }
    const Time end = run_on(graph, Routing::greedy, flows).end;
    EXPECT_NEAR(to_seconds(end), matched ? 0.1 : 0.2, 1e-9);
  }
}

TEST(Flows, LatencyIsThatOfTheWay) {
  // 4 links of 1 us and 12.5 GB/s: 1 MB takes 80 us.
  const LinkGraph graph = made("leaf_spine:leaves=2,spines=2,hosts=2");
  const FlowRun run =
      run_on(graph, Routing::spray, {{.source = 0, .target = 3, .bytes = Bytes(1'000'000)}});
  EXPECT_EQ(run.finish[0], 84_us);
}

RC_GTEST_PROP(Flows, AreNeverFasterThanAnyCut, ()) {
  // What leaves a host takes bytes / bandwidth of its cable at least, and so does what comes.
  const LinkGraph graph = made("fat_tree:k=4,latency=0us");
  const auto routing = *rc::gen::element(Routing::ecmp, Routing::spray, Routing::greedy,
                                         Routing::colour, Routing::adaptive, Routing::d_mod_k);
  std::vector<FlowRequest> flows;
  std::vector<double> out(16);
  std::vector<double> in(16);
  const int count = *rc::gen::inRange(1, 40);
  for (int f = 0; f < count; ++f) {
    const auto source = *rc::gen::inRange(0, 16);
    const auto target = (source + *rc::gen::inRange(1, 16)) % 16;
    const auto bytes = *rc::gen::inRange(1, 1000) * 1000;
    flows.push_back({.source = source, .target = target, .bytes = Bytes(bytes)});
    out[static_cast<std::size_t>(source)] += bytes;
    in[static_cast<std::size_t>(target)] += bytes;
  }
  const FlowRun run = run_on(graph, routing, flows);
  const double most = std::max(*std::ranges::max_element(out), *std::ranges::max_element(in));
  RC_ASSERT(to_seconds(run.end) >= most / 12.5e9 * (1 - 1e-9));
  const double busiest = *std::ranges::max_element(run.load);
  RC_ASSERT(to_seconds(run.end) >= busiest / 12.5e9 * (1 - 1e-6));
}

RC_GTEST_PROP(Flows, OrderOfTheTableIsOfNoMatter, ()) {
  const LinkGraph graph = made("dragonfly:hosts=2,routers=4,globals=2");
  std::vector<FlowRequest> flows;
  const int count = *rc::gen::inRange(1, 60);
  for (int f = 0; f < count; ++f) {
    flows.push_back({.source = *rc::gen::inRange(0, graph.hosts),
                     .target = *rc::gen::inRange(0, graph.hosts),
                     .bytes = Bytes(*rc::gen::inRange(0, 3'000'000)),
                     .start = Time(*rc::gen::inRange(0, 3) * 10'000'000)});
  }
  const FlowRun run = run_on(graph, Routing::ecmp, flows, 7);
  std::vector<FlowRequest> reversed(flows.rbegin(), flows.rend());
  const FlowRun again = run_on(graph, Routing::ecmp, reversed, 7);
  // Equal flows may change places, and so their ways.
  std::vector<Time> a = run.finish;
  std::vector<Time> b = again.finish;
  std::ranges::sort(a);
  std::ranges::sort(b);
  RC_ASSERT(a == b);
  RC_ASSERT(run.load == again.load);
}

RC_GTEST_PROP(Flows, OnePhaseIsNoSlowerWithMoreBandwidth, ()) {
  // Flows that begin together: the last end is that of the busiest link's, or host's, share.
  std::vector<FlowRequest> flows;
  const int count = *rc::gen::inRange(1, 40);
  for (int f = 0; f < count; ++f) {
    const auto source = *rc::gen::inRange(0, 16);
    flows.push_back({.source = source,
                     .target = (source + *rc::gen::inRange(1, 16)) % 16,
                     .bytes = Bytes(1'000'000)});
  }
  const FlowRun slow = run_on(made("fat_tree:k=4"), Routing::ecmp, flows);
  const FlowRun fast = run_on(made("fat_tree:k=4,bandwidth=200Gbit/s"), Routing::ecmp, flows);
  RC_ASSERT(fast.end <= slow.end);
}

TEST(Flows, AllToAllOnAFullTreeIsTheHostBound) {
  // 15 flows of 1 MB leave each host over 12.5 GB/s: 1.2 ms, whatever way they take by d_mod_k.
  const LinkGraph graph = made("fat_tree:k=4,latency=0us");
  const auto flows = make_traffic({.kind = Traffic::all_to_all, .bytes = Bytes(1'000'000)}, 16);
  for (const Routing routing : {Routing::spray, Routing::d_mod_k, Routing::colour}) {
    EXPECT_NEAR(to_seconds(run_on(graph, routing, flows).end), 1.2e-3, 1e-9) << name_of(routing);
  }
}

TEST(Flows, MistakesInATableNameTheCell) {
  const LinkGraph graph = made("fat_tree:k=4");
  const std::string file = ::testing::TempDir() + "/flows.csv";
  ASSERT_TRUE(write_file(file, "source,target,bytes,start_s\nhost0,host99,1.5,-1\n"));
  const auto flows = load_flows(file, graph);
  ASSERT_FALSE(flows);
  EXPECT_EQ(flows.error().mistakes.size(), 3U);
  EXPECT_THAT(flows.error().to_string(), ::testing::HasSubstr(":2: target: found 'host99'"));
}

}  // namespace
}  // namespace orrery::network
