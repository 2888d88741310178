// SPDX-License-Identifier: Apache-2.0
#include "machine/network/flit/experiment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "base/csv.h"
#include "machine/network/flit/routing.h"

namespace orrery::flit {
namespace {

TEST(FlitExperiment, ABookSimFileIsReadUnchanged) {
  const auto read = parse_booksim(
      "// comment\ntopology = torus;\nk  = 4; n = 3;\nrouting_function = dim_order;\n"
      "num_vcs = 2; vc_buf_size = 16;\n/* more\n lines */ packet_size = 8;\n"
      "injection_rate = 0.025; traffic = bitcomp;\nlatency_thres = 200; sample_period = 500.0;\n",
      "file");
  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_EQ(read->topology, "torus:4x4x4");
  EXPECT_EQ(read->routing, "dim_order");
  EXPECT_EQ(read->router.buffer, 16);
  EXPECT_EQ(read->pattern, "bit_complement");
  EXPECT_DOUBLE_EQ(read->load.rate, 0.2);  // packets of 8 flits
  EXPECT_EQ(read->load.sample_period, 500);
  EXPECT_TRUE(prepare(*read));
}

TEST(FlitExperiment, WhatABookSimFileDoesNotStateIsBookSimsDefault) {
  // booksim_config.cpp of booksim/booksim2 (28f4329).
  const auto read = parse_booksim("routing_function = dim_order;\n", "file");
  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_EQ(read->topology, "torus:8x8");
  EXPECT_EQ(read->link_latency, 2);  // use_noc_latency = 1
  EXPECT_EQ(read->router.vcs, 16);
  EXPECT_EQ(read->router.buffer, 8);
  EXPECT_EQ(read->router.routing_delay, 1);
  EXPECT_EQ(read->router.credit_delay, 0);
  EXPECT_EQ(read->router.vc_allocator, Allocator::islip);
  EXPECT_EQ(read->router.sw_allocator, Allocator::islip);
  EXPECT_EQ(read->load.seed, 0U);
  EXPECT_EQ(read->load.rate, 0.1);
  EXPECT_EQ(parse_booksim("use_noc_latency = 0;", "file")->link_latency, 0);
}

/// BookSim 2 itself: 33.7 and 113.2 cycles. Origin: runs of booksim/booksim2 (28f4329), seed 0.
/// What is drawn on the way, where routing takes a cycle, comes in the order of its routers; a
/// dragonfly draws the VC of every try to leave a node.
TEST(FlitExperiment, FilesOfBookSimTakeItsTime) {
  for (const auto& [text, cycles] :
       {std::pair("topology = torus;\nk = 8;\nn = 2;\nrouting_function = dim_order;\n"
                  "num_vcs = 2;\ntraffic = uniform;\ninjection_rate = 0.15;\n",
                  33.7),
        {"topology = dragonflynew;\nk = 2;\nn = 1;\nrouting_function = min;\nnum_vcs = 3;\n"
         "vc_buf_size = 256;\nalloc_iters = 4;\ncredit_delay = 2;\nrouting_delay = 0;\n"
         "internal_speedup = 1.7;\nsample_period = 300;\nmax_samples = 6;\n"
         "injection_rate = 0.2;\n",
         113.2}}) {
    const auto read = parse_booksim(text, "file");
    ASSERT_TRUE(read) << read.error().to_string();
    const auto ready = prepare(*read);
    ASSERT_TRUE(ready) << ready.error().to_string();
    EXPECT_NEAR(run_open_loop(ready->network(*read), read->load).packet_latency, cycles, 0.05)
        << text;
  }
}

TEST(FlitExperiment, LinksOfABookSimFileAreAsLongAsItsProgramMakesThem) {
  const auto latencies = [](const std::string& text) {
    const auto read = parse_booksim(text, "file");
    EXPECT_TRUE(read) << read.error().to_string();
    auto ready = prepare(*read);
    EXPECT_TRUE(ready) << ready.error().to_string();
    return std::move(*ready);
  };
  // Groups of 2 routers with 1 global link each: 3 groups.
  const Prepared dragonfly =
      latencies("topology = dragonflynew; k = 1; n = 1; routing_function = min; num_vcs = 3;");
  for (const Channel& channel : dragonfly.graph->channels) {
    EXPECT_EQ(channel.latency, channel.source / 2 == channel.target / 2 ? 10 : 100);
  }
  // A flattened butterfly on a chip: 4 x 4 routers with tiles of 2 x 2 nodes, so that routers are 2
  // apart, and nodes one from their router.
  const std::string text =
      "topology = flatfly; k = 4; n = 2; c = 4; x = 4; y = 4; xr = 2; yr = 2; num_vcs = 4;\n"
      "routing_function = ran_min; use_noc_latency = ";
  const Prepared chip = latencies(text + "1;");
  for (const Channel& channel : chip.graph->channels) {
    const int columns = std::abs(channel.source % 4 - channel.target % 4);
    const int rows = std::abs(channel.source / 4 - channel.target / 4);
    EXPECT_EQ(channel.latency, 2 * (columns + rows));
  }
  for (const Node& node : chip.graph->nodes) {
    EXPECT_EQ(node.latency, 1);
  }
  const Prepared alike = latencies(text + "0;");
  for (const Channel& channel : alike.graph->channels) {
    EXPECT_EQ(channel.latency, 1);
  }
}

TEST(FlitExperiment, AListOfOneClassIsANumber) {
  const auto read = parse_booksim(
      "injection_rate = {0.2}; latency_thres = {1000,1000,1000}; sample_period = {300};\n"
      "vc_allocator = select; k = {4};",
      "file");
  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_EQ(read->load.rate, 0.2);
  EXPECT_EQ(read->load.latency_limit, 1000);
  EXPECT_EQ(read->load.sample_period, 300);
  EXPECT_EQ(read->topology, "torus:4x4");
  EXPECT_EQ(read->router.vc_allocator, Allocator::select);
  const auto differ = parse_booksim("classes = 2;\nlatency_thres = {100,200};", "file");
  ASSERT_FALSE(differ);
  EXPECT_THAT(differ.error().to_string(), ::testing::HasSubstr("file:2: latency_thres"));
}

TEST(FlitExperiment, MistakesOfABookSimFileAreNamedByLine) {
  const auto read = parse_booksim(
      "topology = mesh;\nnum_vc = 2;\nnoq = 1;\nvc_buf_size = many;\nseed = 1", "file");
  ASSERT_FALSE(read);
  const std::string text = read.error().to_string();
  for (const char* part : {"file:2: num_vc", "did you mean 'num_vcs'", "file:3: noq",
                           "file:4: vc_buf_size", "file:5:", "semicolon"}) {
    EXPECT_THAT(text, ::testing::HasSubstr(part));
  }
}

TEST(FlitExperiment, ConcentratedMeshesOfBookSimFiles) {
  // BookSim's own example (src/examples/cmeshconfig), and the same over express channels.
  const std::string text =
      "topology = cmesh;\nk = 4;\nn = 2;\nc = 4;\nxr = 2;\nyr = 2;\nx = 4;\ny = 4;\n"
      "traffic = bitcomp;\nbatch_size = 2000;\nrouting_function = ";
  const auto plain = parse_booksim(text + "dor_no_express;\n", "file");
  ASSERT_TRUE(plain) << plain.error().to_string();
  EXPECT_EQ(plain->topology, "cmesh:4x4,c=4");
  EXPECT_EQ(plain->routing, "dor");
  EXPECT_TRUE(prepare(*plain));
  const auto express = parse_booksim(text + "dor;\nuse_noc_latency = 1;\n", "file");
  ASSERT_TRUE(express) << express.error().to_string();
  EXPECT_EQ(express->topology, "cmesh:4x4,c=4,express=1");
  EXPECT_EQ(express->link_latency, 2);
  EXPECT_TRUE(prepare(*express));
}

TEST(FlitExperiment, TreesAllocatorsAndBurstsOfBookSimFiles) {
  const auto read = parse_booksim(
      "topology = qtree; k = 4; n = 3; routing_function = nca;\nvc_allocator = wavefront;\n"
      "sw_allocator = pim; injection_process = on_off; burst_alpha = 0.25; burst_beta = 0.25;\n"
      "hold_switch_for_packet = 1; internal_speedup = 2.0;\n",
      "file");
  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_EQ(read->topology, "qtree:k=4,n=3");
  EXPECT_EQ(read->router.vc_allocator, Allocator::wavefront);
  EXPECT_EQ(read->router.sw_allocator, Allocator::pim);
  EXPECT_EQ(read->load.burst_alpha, 0.25);
  EXPECT_TRUE(read->router.hold_switch_for_packet);
  EXPECT_EQ(read->router.internal_speedup, 2);
  EXPECT_TRUE(prepare(*read));
  const auto wrong = parse_booksim(
      "topology = tree4; k = 8; n = 3;\npacket_size = 2;\nbuffer_policy = shared;\n", "file");
  ASSERT_FALSE(wrong);
  for (const char* part : {"file:1: topology", "file:3: buffer_policy"}) {
    EXPECT_THAT(wrong.error().to_string(), ::testing::HasSubstr(part));
  }
}

TEST(FlitExperiment, ClassesSpeculationAndSpeedUpsOfBookSimFiles) {
  const auto read = parse_booksim(
      "topology = mesh; k = 4; n = 2; num_vcs = 8;\nclasses = 3; injection_rate = {0.1, 0.02};\n"
      "packet_size = {{1,2,8},{4}}; packet_size_rate = {{2,1,1}};\n"
      "traffic = {uniform, hotspot({{3,7},{2,1}}), transpose}; use_read_write = {0,0,1};\n"
      "read_request_begin_vc = -1; read_request_end_vc = -1; write_request_begin_vc = 1;\n"
      "write_request_end_vc = 2; read_reply_begin_vc = -1; read_reply_end_vc = -1;\n"
      "write_reply_begin_vc = -1; write_reply_end_vc = -1; read_reply_size = 5;\n"
      "injection_process = {bernoulli, on_off(0.1,0.3)}; priority = class;\n"
      "class_priority = {2,1,0}; speculative = 1; spec_sw_allocator = islip;\n"
      "sw_allocator = separable_output_first(matrix); output_speedup = 2; alloc_iters = 2;\n"
      "vc_allocator = islip(1);\n",
      "file");
  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_EQ(read->router.speculation, Speculation::separate);
  EXPECT_EQ(read->router.spec_allocator, Allocator::islip);
  EXPECT_EQ(read->router.vc_arbiter, Arbiter::round_robin);
  EXPECT_EQ(read->router.sw_arbiter, Arbiter::matrix);
  EXPECT_EQ(read->router.priority, Priority::traffic_class);
  ASSERT_EQ(read->classes.size(), 3U);
  EXPECT_THAT(read->classes[0].sizes, ::testing::ElementsAre(1, 2, 8));
  EXPECT_THAT(read->classes[2].sizes, ::testing::ElementsAre(4));
  EXPECT_EQ(read->classes[1].pattern, "hotspot:3*2,7*1");
  EXPECT_TRUE(read->classes[2].transacts);
  // Packets of 0.1 x (2 x 1 + 2 + 8) / 4 = 3 flits, of 0.02 x 4, and of 0.02 x (1 + 1 + 5 + 1) / 2.
  EXPECT_NEAR(read->load.rate, 0.3 + 0.08 + 0.08, 1e-12);
  EXPECT_NEAR(read->classes[0].probability(read->load.rate), 0.1, 1e-12);
  EXPECT_NEAR(read->classes[1].probability(read->load.rate), 0.02 * (0.1 + 0.3) / 0.1, 1e-12);
  EXPECT_EQ(read->purpose_vcs[1], std::pair(0, 3));  // -1: the half of requests
  EXPECT_EQ(read->purpose_vcs[2], std::pair(1, 2));
  EXPECT_EQ(read->purpose_vcs[4], std::pair(4, 7));
  EXPECT_TRUE(prepare(*read));
}

TEST(FlitExperiment, MistakesOfClassesAreNamed) {
  const auto mistake = [](const std::string& settings) {
    const auto read = parse_booksim("topology = mesh; k = 4; n = 2;\n" + settings, "file");
    const auto ready = read ? check(*read) : Result<void>(fail(read.error()));
    return ready ? std::string() : ready.error().to_string();
  };
  EXPECT_EQ(mistake("packet_size = {{1,4}};"), "");
  for (const auto& [settings, part] :
       {std::pair("classes = 0;", "file:2: classes"),
        {"packet_size = {{1,x}};", "file:2: packet_size"},
        {"packet_size = {{0,4}};", "packet_size"},
        {"use_read_write = 1; num_vcs = 8;", "read_reply_begin_vc"},
        {"speculative = 1; vc_alloc_delay = 2;", "vc_alloc_delay"},
        {"injection_process = on_off(0.5);\nburst_r1 = 0.5;", "file:2: injection_process"},
        {"speculative = 1; sw_allocator = wavefront;", "sw_allocator"},
        {"injection_rate = {0.9,0.9}; packet_size = 3;", "rate"}}) {
    EXPECT_THAT(mistake(settings), ::testing::HasSubstr(part)) << settings;
  }
  // One mistake makes no other of what comes after it.
  for (const char* settings : {"classes = 0; injection_rate = 0.1; traffic = uniform;",
                               "packet_size = {{0,4}}; injection_rate = 0.1;"}) {
    EXPECT_THAT(mistake(settings), ::testing::Not(::testing::HasSubstr("no setting"))) << settings;
  }
}

/// Routers visited, mean over all pairs of nodes.
double mean_hops(const char* topology) {
  const auto graph = parse_network(topology);
  const auto routing = Routing::make(*graph, default_algorithm(graph->shape), 4);
  Random random(1);
  double sum = 0;
  const auto nodes = static_cast<std::uint32_t>(graph->nodes.size());
  for (std::uint32_t source = 0; source < nodes; ++source) {
    for (std::uint32_t target = 0; target < nodes; ++target) {
      const RouteState state = routing->start(source, target, 0, random);
      sum += 1 + routing->channels_ahead(state,
                                         static_cast<std::uint32_t>(graph->nodes[source].inject));
    }
  }
  return sum / nodes / nodes;
}

TEST(FlitExperiment, HopsOfConcentratedMeshesAndTrees) {
  // 4 x 4 routers: of 16 pairs in a line 6 are 1 apart, 4 are 2, 2 are 3: 1.25 in each dimension.
  EXPECT_DOUBLE_EQ(mean_hops("cmesh:4x4,c=4"), 1 + 2 * 1.25);
  // In the two edge rows (of the source) 2 are 1 hop and 3 are 2: (6 + 4 + 4) / 16 = 0.875; the
  // mean of edge and inner rows is 1.0625, and so by columns (of the target).
  EXPECT_DOUBLE_EQ(mean_hops("cmesh:4x4,c=4,express=1"), 1 + 2 * 1.0625);
  // Of 64 nodes 4 are on the same router (1), 12 below the same parent (3), 48 beyond (5).
  EXPECT_DOUBLE_EQ(mean_hops("qtree:k=4,n=3"), (4 * 1 + 12 * 3 + 48 * 5) / 64.0);
  EXPECT_DOUBLE_EQ(mean_hops("tree4:k=4"), (4 * 1 + 12 * 3 + 48 * 5) / 64.0);
}

TEST(FlitExperiment, BurstsKeepTheLoadAndWaitLonger) {
  Experiment experiment;
  experiment.topology = "mesh:8x8";
  experiment.load.rate = 0.2;
  experiment.load.sample_period = 10'000;
  const auto measure = [](const Experiment& of) {
    const auto prepared = prepare(of);
    EXPECT_TRUE(prepared);
    return run_open_loop(*prepared->graph, prepared->routing, of.router, prepared->traffic,
                         of.load);
  };
  const OpenLoopResult steady = measure(experiment);
  // Half of the cycles in bursts of 20 on average, there 0.4 flits a cycle: 0.2 in the mean.
  experiment.load.burst_alpha = 0.05;
  experiment.load.burst_beta = 0.05;
  const OpenLoopResult bursts = measure(experiment);
  EXPECT_NEAR(bursts.injected, 0.2, 0.004);
  EXPECT_NEAR(bursts.accepted, 0.2, 0.004);
  EXPECT_GT(bursts.packet_latency, steady.packet_latency);
  experiment.load.rate = 0.6;  // 1.2 flits a cycle in a burst
  EXPECT_FALSE(check(experiment));
}

TEST(FlitExperiment, AListOfLinksHasLatenciesByDirection) {
  const auto graph =
      parse_link_list("router 0 node 0 node 1 3 router 7 15\nrouter 7 node 2\n", "f");
  ASSERT_TRUE(graph) << graph.error().to_string();
  EXPECT_EQ(graph->routers, 2);
  ASSERT_EQ(graph->channels.size(), 2U);
  EXPECT_EQ(graph->channels[0].latency, 15);
  EXPECT_EQ(graph->channels[1].latency, 1);
  EXPECT_EQ(graph->nodes[1].latency, 3);
  EXPECT_FALSE(parse_link_list("router 0 node 0 router\n", "f"));
  EXPECT_FALSE(parse_link_list("router 0 node 1\n", "f"));
  EXPECT_FALSE(parse_link_list("", "f"));
}

TEST(FlitExperiment, SizesThatCannotBeAreRefused) {
  for (const char* text :
       {"mesh", "mesh:", "mesh:0x4", "mesh:99999x99999", "tree:4", "fly:k=4", "fat_tree:k=99,n=99",
        "dragonfly:p=1,a=2,h=1,z=4", "torus:4x4,k=2", "cmesh:4x4", "cmesh:4x4,c=3",
        "cmesh:4x6,c=4,express=1", "cmesh:4x4x4,c=4", "qtree:k=4", "qtree:k=1,n=3",
        "qtree:k=99,n=99", "tree4:k=3", "tree4:n=3"}) {
    EXPECT_FALSE(parse_network(text)) << text;
  }
  Experiment experiment;
  experiment.load.rate = 0;
  experiment.router.vcs = 100;
  const auto wrong = check(experiment);
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().mistakes.size(), 2U);
}

TEST(FlitTraffic, PatternsAreThoseOfTheirFormulas) {
  const RouterGraph mesh = make_grid(Shape::mesh, {8, 8});
  Random random(1);
  const auto target = [&](const char* pattern, std::uint32_t source) {
    return Traffic::make(pattern, mesh)->target(source, random);
  };
  EXPECT_EQ(target("transpose", 0b001'011), 0b011'001U);
  EXPECT_EQ(target("bit_complement", 0b001'011), 0b110'100U);
  EXPECT_EQ(target("bit_reverse", 0b001'011), 0b110'100U);
  EXPECT_EQ(target("shuffle", 0b100'011), 0b000'111U);
  EXPECT_EQ(target("tornado", 8 * 2 + 7), 8U * 5 + 2);  // both digits 3 on
  EXPECT_EQ(target("neighbor", 8 * 7 + 1), 2U);
  EXPECT_EQ(target("hotspot:5", 1), 5U);
  EXPECT_EQ(target("hotspot:5*3,6*0", 1), 5U);  // a weight of 0 is never drawn
  // Knuth's sequence of seed 5 draws places among 8, 7, 6 ... nodes: worked out apart from this.
  const RouterGraph line = make_grid(Shape::mesh, {8});
  const auto drawn = Traffic::make("random_permutation:5", line);
  ASSERT_TRUE(drawn);
  std::vector<std::uint32_t> targets;
  for (std::uint32_t source = 0; source < 8; ++source) {
    targets.push_back(drawn->target(source, random));
  }
  EXPECT_THAT(targets, ::testing::ElementsAre(5, 2, 7, 0, 3, 6, 4, 1));
  EXPECT_EQ(Traffic::make("random_permutation", line)->target(0, random), 7U);  // of seed 0
  EXPECT_FALSE(Traffic::make("random_permutation:x", line));
  EXPECT_FALSE(Traffic::make("hotspot:5*1001", mesh));
  EXPECT_FALSE(Traffic::make("bad_dragon", mesh));
  EXPECT_FALSE(Traffic::make("taper64", make_grid(Shape::mesh, {3, 3})));
  EXPECT_FALSE(Traffic::make("asymmetric", make_grid(Shape::mesh, {3, 3})));
  EXPECT_FALSE(Traffic::make("transpose", make_grid(Shape::mesh, {3, 3})));
  EXPECT_FALSE(Traffic::make("hotspot:99", mesh));
}

/// Returns how often each node is drawn from `source`, of 90,000 times.
std::map<std::uint32_t, double> shares(const char* pattern, const RouterGraph& graph,
                                       std::uint32_t source) {
  constexpr int kDraws = 90'000;
  const auto traffic = Traffic::make(pattern, graph);
  Random random(7);
  std::map<std::uint32_t, double> found;
  for (int i = 0; i < kDraws; ++i) {
    found[traffic->target(source, random)] += 1.0 / kDraws;
  }
  return found;
}

TEST(FlitTraffic, PatternsThatDrawHaveTheirShares) {
  const RouterGraph mesh = make_grid(Shape::mesh, {8, 8});
  const auto diagonal = shares("diagonal", mesh, 63);
  EXPECT_EQ(diagonal.size(), 2U);
  EXPECT_NEAR(diagonal.at(0), 1.0 / 3, 0.01);
  EXPECT_NEAR(diagonal.at(63), 2.0 / 3, 0.01);
  const auto asymmetric = shares("asymmetric", mesh, 40);
  EXPECT_EQ(asymmetric.size(), 2U);
  EXPECT_NEAR(asymmetric.at(8), 0.5, 0.01);
  EXPECT_NEAR(asymmetric.at(40), 0.5, 0.01);
  // Half to 64 nodes alike; half to the nine at -9, -8, -7, -1, 0, 1, 7, 8, 9.
  const auto taper = shares("taper64", mesh, 0);
  EXPECT_EQ(taper.size(), 64U);
  for (const std::uint32_t near : {0U, 1U, 7U, 8U, 9U, 55U, 56U, 57U, 63U}) {
    EXPECT_NEAR(taper.at(near), 1.0 / 128 + 1.0 / 18, 0.005) << near;
  }
  EXPECT_NEAR(taper.at(32), 1.0 / 128, 0.003);
  // Groups of 4 routers with 2 nodes: from the last, 64 to 71, to the first.
  const auto dragon = shares("bad_dragon", make_dragonfly(2, 4, 2), 70);
  EXPECT_EQ(dragon.size(), 8U);
  EXPECT_EQ(dragon.rbegin()->first, 7U);
  const auto hot = shares("hotspot:3*1,9*3", mesh, 5);
  EXPECT_NEAR(hot.at(9), 0.75, 0.01);
}

}  // namespace
}  // namespace orrery::flit
