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
    const double expected = std::stod(std::string(table->rows[f].cells[column]));
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

TEST(Flows, LatencyIsThatOfTheRoute) {
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
  // Equal flows may change places, and so their routes.
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

FlowRun run_unfolded(const LinkGraph& graph, Routing routing,
                     const std::vector<FlowRequest>& flows) {
  Router router(graph, routing);
  return *run_flows(router, flows, {.fold = false});
}

TEST(Flows, AlikeOnesAreSimulatedAsOne) {
  // All-to-all on a full tree of two levels by d_mod_k: flows to the own leaf, and to others.
  const LinkGraph graph = made("leaf_spine:leaves=4,spines=4,hosts=4");
  const auto all = make_traffic({.kind = Traffic::all_to_all, .bytes = Bytes(1'000'000)}, 16);
  const FlowRun run = run_on(graph, Routing::d_mod_k, all);
  EXPECT_EQ(run.pieces, 240U);
  EXPECT_EQ(run.simulated, 2U);
  EXPECT_EQ(run.solved, 2U);
  // 12 of 15 flows of a host leave its leaf: on uplink and downlink 12 MB of 4 hosts over 4 each.
  for (std::size_t l = 0; l < graph.links.size(); ++l) {
    const bool host = graph.links[l].source < 16 || graph.links[l].target < 16;
    EXPECT_NEAR(run.load[l], host ? 15e6 : 12e6, 1) << graph.link_name(l);
  }
}

TEST(Flows, StepsThatStartTogetherAreOneSolve) {
  // 16 flows of a permutation begin at once and end at once: a rate for each.
  const LinkGraph graph = made("fat_tree:k=4,latency=0us");
  const auto flows = make_traffic({.kind = Traffic::permutation, .bytes = Bytes(1'000'000)}, 16);
  const FlowRun run = run_unfolded(graph, Routing::colour, flows);
  EXPECT_EQ(run.solved, 16U);
}

RC_GTEST_PROP(Flows, FoldedOnesAreAsAll, ()) {
  // Shifts of random strides and sizes on regular networks, and now and then a flow that spoils the
  // symmetry.
  const auto spec = *rc::gen::elementOf(std::vector<std::string>{
      "fat_tree:k=4", "leaf_spine:leaves=4,spines=2,hosts=4", "torus:4x4", "torus:3x5",
      "hammingmesh:board=2x2,shape=2x2", "flattened_butterfly:shape=4x4,hosts=1",
      "rail:servers=4,gpus=4,group=4,spines=2"});
  const LinkGraph graph = made(spec);
  const auto routing = *rc::gen::element(Routing::automatic, Routing::spray, Routing::shortest,
                                         Routing::ecmp, Routing::d_mod_k, Routing::colour);
  RC_PRE(topology::check_routing(graph, routing).has_value());
  std::vector<FlowRequest> flows;
  const int shifts = *rc::gen::inRange(1, 5);
  for (int s = 0; s < shifts; ++s) {
    const TrafficSpec traffic{.kind = *rc::gen::element(Traffic::ring, Traffic::all_to_all),
                              .bytes = Bytes(*rc::gen::inRange(1, 4) * 1'000'000),
                              .stride = *rc::gen::inRange(1, graph.hosts)};
    const auto start = Time(*rc::gen::inRange(0, 3) * 50'000'000);
    const double weight = *rc::gen::inRange(1, 3);
    for (FlowRequest flow : make_traffic(traffic, graph.hosts)) {
      flow.start = start;
      flow.weight = weight;
      flows.push_back(flow);
    }
  }
  if (*rc::gen::inRange(0, 3) == 0) {
    flows.push_back({.source = 0, .target = 1, .bytes = Bytes(500'000), .cap = Bandwidth(1e9)});
  }
  const FlowRun folded = run_on(graph, routing, flows);
  const FlowRun all = run_unfolded(graph, routing, flows);
  RC_ASSERT(folded.pieces == all.pieces);
  RC_CLASSIFY(folded.simulated < all.simulated);
  // Sums of rates in another order: within picoseconds.
  for (std::size_t f = 0; f < flows.size(); ++f) {
    RC_ASSERT(std::abs((folded.finish[f] - all.finish[f]).value()) <= 20);
  }
  for (std::size_t l = 0; l < all.load.size(); ++l) {
    RC_ASSERT(std::abs(folded.load[l] - all.load[l]) <= 1e-9 * all.load[l]);
  }
}

TEST(Flows, AllToAllOnAFullTreeIsTheHostBound) {
  // 15 flows of 1 MB leave each host over 12.5 GB/s: 1.2 ms, whatever route they take by d_mod_k.
  const LinkGraph graph = made("fat_tree:k=4,latency=0us");
  const auto flows = make_traffic({.kind = Traffic::all_to_all, .bytes = Bytes(1'000'000)}, 16);
  for (const Routing routing : {Routing::spray, Routing::d_mod_k, Routing::colour}) {
    EXPECT_NEAR(to_seconds(run_on(graph, routing, flows).end), 1.2e-3, 1e-9) << name_of(routing);
  }
}

TEST(Flows, TakeTheWayThatTheirRowStates) {
  // Two pods of a 4-port tree; d_mod_k would put both flows to host4 on one uplink of their edge.
  // Stated apart they meet only on the last link: 1 MB each at 12.5 GB/s by two = 160 us, alone
  // before 80 us. The stated links carry 1 MB, also where flows without a statement are beside.
  const LinkGraph graph = made("fat_tree:k=4,latency=0us");
  const std::string file = ::testing::TempDir() + "/stated.csv";
  ASSERT_TRUE(write_file(file,
                         "source,target,bytes,via\nhost0,host4,1000000,aggregation0 core2\n"
                         "host1,host4,1000000,aggregation1\nhost8,host9,1000000,\n"));
  const auto flows = load_flows(file, graph);
  ASSERT_TRUE(flows) << flows.error().to_string();
  for (const bool reversed : {false, true}) {
    std::vector<FlowRequest> given = *flows;
    if (reversed) {
      std::ranges::reverse(given);
    }
    const FlowRun run = run_on(graph, Routing::d_mod_k, given);
    std::vector<Time> finish = run.finish;
    std::ranges::sort(finish);
    EXPECT_EQ(finish, (std::vector<Time>{80_us, 160_us, 160_us}));
    for (std::size_t l = 0; l < graph.links.size(); ++l) {
      const std::string name = graph.link_name(l);
      if (name == "edge0->aggregation0" || name == "aggregation0->core2" ||
          name == "core2->aggregation2" || name == "edge0->aggregation1") {
        EXPECT_EQ(run.load[l], 1e6) << name;
      }
    }
  }
}

TEST(Flows, WaysThatDoNotExistAreNamed) {
  const LinkGraph graph = made("fat_tree:k=4");
  const std::string file = ::testing::TempDir() + "/stops.csv";
  ASSERT_TRUE(write_file(file, "source,target,bytes,via\nhost0,host4,1,edge0 cor1\n"));
  const auto flows = load_flows(file, graph);
  ASSERT_FALSE(flows);
  EXPECT_THAT(flows.error().to_string(), ::testing::HasSubstr(":2: via: found 'cor1'"));
  LinkGraph apart;
  apart.hosts = 2;
  apart.vertices = {{topology::VertexKind::host, "a", 0},
                    {topology::VertexKind::host, "b", 0},
                    {topology::VertexKind::switch_, "s", 1}};
  apart.connect(0, 1, Bandwidth(1e9), Time(0));
  Router router(apart, Routing::ecmp);
  const auto run = run_flows(router, {{.target = 1, .bytes = Bytes(1), .via = {2}}});
  ASSERT_FALSE(run);
  EXPECT_THAT(run.error().to_string(), ::testing::HasSubstr("no way leads from a to b via s"));
}

TEST(Flows, AConnectionMatrixOfHtsimIsATable) {
  // Times are in picoseconds, sizes in bytes.
  const LinkGraph graph = made("fat_tree:k=4");
  const std::string file = ::testing::TempDir() + "/flows.cm";
  ASSERT_TRUE(write_file(file,
                         "Nodes 16\nConnections 2\n3->0 id 1 start 2500000 size 2000000 prio 1\n"
                         "\n15->4 start 0 size 64\n"));
  const auto flows = load_flows(file, graph);
  ASSERT_TRUE(flows) << flows.error().to_string();
  FlowRequest first{.source = 3, .target = 0, .bytes = Bytes(2'000'000), .start = Time(2'500'000)};
  FlowRequest second{.source = 15, .target = 4, .bytes = Bytes(64)};
  EXPECT_EQ(*flows, (std::vector{first, second}));
  ASSERT_TRUE(write_file(file,
                         "Nodes 4\nConnections 9\n0->4 start 0 size 1\n0->1 start 0\n"
                         "0->1 trigger 3 size 1\n0->1 start 0 sise 1\n0->1 start 0.0 size 0\n"));
  const std::string said = load_flows(file, graph).error().to_string();
  EXPECT_THAT(said, ::testing::HasSubstr(":3: found '4', expected a host from 0 to 3"));
  EXPECT_THAT(said, ::testing::HasSubstr(":4: found '0->1', expected a size"));
  EXPECT_THAT(said, ::testing::HasSubstr(":5: found 'trigger', expected start"));
  EXPECT_THAT(said, ::testing::HasSubstr("did you mean 'size'?"));
  EXPECT_THAT(said, ::testing::HasSubstr(":7: found '0', expected a size above 0"));
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
