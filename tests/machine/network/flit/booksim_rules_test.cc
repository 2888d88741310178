// SPDX-License-Identifier: Apache-2.0
/// The routes and virtual channels of BookSim 2, step by step by hand from its published source:
/// routefunc.cpp, flatfly_onchip.cpp and cmesh.cpp of commit 923f1a9, dragonfly.cpp of 0d815b7,
/// outputset.hpp.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "machine/network/flit/deadlock.h"
#include "machine/network/flit/experiment.h"

namespace orrery::flit {
namespace {

/// `graph` stays where it is.
std::unique_ptr<RouterGraph> graph_of(const char* topology) {
  return std::make_unique<RouterGraph>(*parse_network(topology));
}

Routing booksim(const RouterGraph& graph, Algorithm algorithm, int vcs) {
  auto made = Routing::make(graph, algorithm, vcs, Rules::booksim);
  EXPECT_TRUE(made);
  return std::move(*made);
}

/// The outputs at a router: target router and VCs; -1: the node.
using Outputs = std::vector<std::pair<std::int32_t, VcMask>>;
Outputs outputs_at(const Routing& routing, RouteState& state, std::uint32_t router) {
  Random random(1);
  Candidates found;
  routing.next(state, router, random, found);
  Outputs list;
  for (int i = 0; i < found.count; ++i) {
    const Candidate& output = found.list[static_cast<std::size_t>(i)];
    const auto& channels = routing.graph().channels;
    list.push_back({output.port < channels.size() ? channels[output.port].target : -1, output.vcs});
  }
  return list;
}

/// Three VCs have the halves {0, 1} and {1, 2}; a packet that was sent along x in VC 1 goes on
/// along y first, since VC 1 is not below 3 / 2 = 1. It goes from router 0 of a 3 x 3 mesh to 8.
TEST(BookSimRules, HalvesOfAnOddNumberOfVcsShareTheMiddle) {
  const auto mesh = graph_of("mesh:3x3");
  const Routing routing = booksim(*mesh, Algorithm::o1turn, 3);
  RouteState along_x{.target = 8};
  EXPECT_EQ(outputs_at(routing, along_x, 0), (Outputs{{1, 0b011}}));
  RouteState stays = along_x;
  routing.enter(stays, 0);
  EXPECT_EQ(outputs_at(routing, stays, 1), (Outputs{{2, 0b011}}));
  routing.enter(along_x, 1);
  EXPECT_EQ(outputs_at(routing, along_x, 1), (Outputs{{4, 0b110}}));
}

/// A packet goes from 0 by 4 to 1 on a mesh of 3 x 3: along x to 1, which is the target, and on in
/// all VCs; from 4 it goes back in the second half.
TEST(BookSimRules, AtItsTargetAPacketOfTwoPhasesTakesAnyVc) {
  const auto mesh = graph_of("mesh:3x3");
  const Routing routing = booksim(*mesh, Algorithm::valiant, 4);
  RouteState state{.target = 1, .via = 4};
  EXPECT_EQ(outputs_at(routing, state, 0), (Outputs{{1, 0b0011}}));
  EXPECT_EQ(outputs_at(routing, state, 1), (Outputs{{4, 0b1111}}));
  EXPECT_EQ(outputs_at(routing, state, 4), (Outputs{{1, 0b1100}}));
  EXPECT_EQ(outputs_at(routing, state, 1), (Outputs{{-1, 0b1111}}));
}

/// Nodes of a flattened butterfly in a line of 4 routers end where they pass their target.
TEST(BookSimRules, ValiantOfAFlattenedButterflyEndsAtItsTarget) {
  const auto line = graph_of("flattened_butterfly:4x4,c=4");
  const Routing routing = booksim(*line, Algorithm::valiant, 4);
  const auto node_of = [&](std::int32_t router) {
    std::uint32_t node = 0;
    while (line->nodes[node].eject != router) {
      ++node;
    }
    return node;
  };
  // 0 by 5 to 1: first along x, to 1.
  RouteState state{.target = node_of(1), .via = 5};
  EXPECT_EQ(outputs_at(routing, state, 0), (Outputs{{1, 0b0011}}));
  EXPECT_EQ(outputs_at(routing, state, 1), (Outputs{{-1, 0b1111}}));
}

/// BookSim's sets of outputs are ordered by priority alone, so that of two dimensions of priority 1
/// the first stays: from 0 to 15 of 4 x 4 routers by 1, not by 4. In the escape a packet asks
/// for the escape only.
TEST(BookSimRules, MinAdaptAsksForTheLowestDimensionAndBehindItForTheEscape) {
  const auto mesh = graph_of("mesh:4x4");
  const Routing routing = booksim(*mesh, Algorithm::adaptive, 4);
  RouteState state{.target = 15};
  EXPECT_EQ(outputs_at(routing, state, 0), (Outputs{{1, 0b1110}, {1, 0b0001}}));
  RouteState escaped = state;
  routing.enter(escaped, 0);
  EXPECT_EQ(outputs_at(routing, escaped, 1), (Outputs{{2, 0b0001}}));
  routing.enter(state, 2);
  EXPECT_EQ(outputs_at(routing, state, 1), (Outputs{{2, 0b1110}, {2, 0b0001}}));
  RouteState there{.target = 5};
  EXPECT_EQ(outputs_at(routing, there, 5), (Outputs{{-1, 0b1111}}));
  EXPECT_EQ(check_dependencies(routing).freedom, Freedom::free);
}

/// On a ring of 5 from 3 to 0: two up, over the end: the escape is VC 1, the other VC 3. On a ring
/// of 4 from 0 to 2 both ways are as long: VC 3 goes down, the escape is drawn.
TEST(BookSimRules, MinAdaptOfATorusHasOneVcBesideTwoEscapes) {
  const auto five = graph_of("torus:5");
  const Routing odd = booksim(*five, Algorithm::adaptive, 4);
  RouteState state{.target = 0};
  EXPECT_EQ(outputs_at(odd, state, 3), (Outputs{{4, 0b1000}, {4, 0b0010}}));
  odd.enter(state, 1);
  EXPECT_EQ(outputs_at(odd, state, 4), (Outputs{{0, 0b0010}}));
  EXPECT_EQ(check_dependencies(odd).freedom, Freedom::free);
  const auto four = graph_of("torus:4");
  const Routing even = booksim(*four, Algorithm::adaptive, 4);
  std::vector<Routing::Choice> choices;
  even.all_choices({.target = 2}, 0, choices);
  Outputs all;
  for (const Routing::Choice& choice : choices) {
    all.push_back({four->channels[choice.output.port].target, choice.output.vcs});
  }
  EXPECT_EQ(all, (Outputs{{3, 0b1000}, {3, 0b0001}, {3, 0b1000}, {1, 0b0001}}));
  EXPECT_FALSE(Routing::make(*four, Algorithm::adaptive, 3, Rules::booksim));
}

/// Groups of 2 routers with a link each to the others: 0 to 2, 1 to 4, 3 to 5. From 0 to 5 by 3: to
/// 2 and 3 in VC 0; there phase 1 begins, and ends with the link to 5. Minimal: 0 to 1 in VC 1,
/// over the link to 4 and to 5 in VC 2. min has VC 0 before a link, VC 1 behind it.
TEST(BookSimRules, ADragonflyHasAVcForEachPhase) {
  const auto graph = graph_of("dragonfly:p=1,a=2,h=1");
  const Routing ugal = booksim(*graph, Algorithm::ugal, 3);
  RouteState around{.target = 5, .via = 3};
  EXPECT_EQ(outputs_at(ugal, around, 0), (Outputs{{2, 0b001}}));
  EXPECT_EQ(outputs_at(ugal, around, 2), (Outputs{{3, 0b001}}));
  EXPECT_EQ(outputs_at(ugal, around, 3), (Outputs{{5, 0b100}}));
  EXPECT_EQ(outputs_at(ugal, around, 5), (Outputs{{-1, 0b100}}));
  RouteState direct = Routing::minimal({.target = 5, .via = 3}, 0);
  EXPECT_EQ(outputs_at(ugal, direct, 0), (Outputs{{1, 0b010}}));
  EXPECT_EQ(outputs_at(ugal, direct, 1), (Outputs{{4, 0b100}}));
  EXPECT_EQ(outputs_at(ugal, direct, 4), (Outputs{{5, 0b100}}));
  // Where the drawn node's router is the target's the packet leaves in VC 1.
  RouteState ends{.target = 3, .via = 3};
  EXPECT_EQ(outputs_at(ugal, ends, 0), (Outputs{{2, 0b001}}));
  EXPECT_EQ(outputs_at(ugal, ends, 2), (Outputs{{3, 0b001}}));
  EXPECT_EQ(outputs_at(ugal, ends, 3), (Outputs{{-1, 0b010}}));
  // To its own group a packet goes in VC 2.
  Random random(1);
  RouteState near = ugal.start(0, 1, 0, random);
  EXPECT_EQ(outputs_at(ugal, near, 0), (Outputs{{1, 0b100}}));
  const Routing min = booksim(*graph, Algorithm::min, 2);
  RouteState state{.target = 5};
  EXPECT_EQ(outputs_at(min, state, 0), (Outputs{{1, 0b01}}));
  EXPECT_EQ(outputs_at(min, state, 1), (Outputs{{4, 0b10}}));
  EXPECT_EQ(outputs_at(min, state, 4), (Outputs{{5, 0b10}}));
  EXPECT_EQ(outputs_at(min, state, 5), (Outputs{{-1, 0b10}}));
}

/// All packets of min_adapt take the hops of dor: with one seed the same packets are measured.
TEST(BookSimRules, MinAdaptVisitsTheRoutersOfDimensionOrder) {
  const auto run = [](const std::string& routing) {
    const auto read = parse_booksim(
        "topology = mesh; k = 4; n = 2; num_vcs = 4; injection_rate = 0.3;\n"
        "routing_delay = 0; vc_allocator = separable_input_first; seed = 1;\n"
        "routing_function = " +
            routing + ";",
        "file");
    EXPECT_TRUE(read) << read.error().to_string();
    const auto ready = prepare(*read);
    EXPECT_TRUE(ready) << ready.error().to_string();
    return run_open_loop(ready->network(*read), read->load);
  };
  const OpenLoopResult adaptive = run("min_adapt");
  const OpenLoopResult dor = run("dor");
  EXPECT_EQ(adaptive.packets, dor.packets);
  EXPECT_EQ(adaptive.hops, dor.hops);
  EXPECT_NE(adaptive.packet_latency, dor.packet_latency);  // one VC less for most
}

/// Routings that BookSim's dragonflies do not have run, too: all packets arrive, in 1 router to the
/// node itself, and at most 7 (three in each of two groups, the last). Buffers of 256 flits cover
/// the round trip of 200 cycles.
TEST(BookSimRules, OtherRoutingsOfADragonflyArrive) {
  for (const char* routing : {"valiant; num_vcs = 3", "up_down; num_vcs = 1"}) {
    const auto read = parse_booksim(
        "topology = dragonflynew; k = 1; n = 1; injection_rate = 0.01;\nvc_buf_size = 256;"
        "routing_function = " +
            std::string(routing) + ";",
        "file");
    ASSERT_TRUE(read) << read.error().to_string();
    const auto ready = prepare(*read);
    ASSERT_TRUE(ready) << ready.error().to_string();
    const OpenLoopResult run = run_open_loop(ready->network(*read), read->load);
    EXPECT_TRUE(run.stable) << run.reason;
    EXPECT_GT(run.hops, 1);
    EXPECT_LT(run.hops, 7);
  }
}

/// Links of a concentrated mesh of 4 x 4 on a chip: 2 to the next router, 4 along an edge over two.
TEST(BookSimRules, ExpressChannelsAreAsLongAsTheyReach) {
  const auto read = parse_booksim(
      "topology = cmesh; k = 4; n = 2; c = 4; x = 4; y = 4; xr = 2; yr = 2;\n"
      "routing_function = dor;",
      "file");
  ASSERT_TRUE(read) << read.error().to_string();
  const auto ready = prepare(*read);
  ASSERT_TRUE(ready) << ready.error().to_string();
  int express = 0;
  for (const Channel& channel : ready->graph->channels) {
    const int apart = std::abs(channel.source - channel.target);
    EXPECT_EQ(channel.latency, apart == 1 || apart == 4 ? 2 : 4);
    express += channel.latency == 4 ? 1 : 0;
  }
  EXPECT_EQ(express, 16);  // one at each end of a row or column
}

/// A number in brackets says the iterations of an allocator, 1 without; alloc_iters does not.
TEST(BookSimRules, IterationsAreThoseOfBothAllocators) {
  const auto both = parse_booksim(
      "topology = mesh; vc_allocator = islip(2); sw_allocator = islip(2); alloc_iters = 3;",
      "file");
  ASSERT_TRUE(both) << both.error().to_string();
  EXPECT_EQ(both->router.alloc_iters, 2);
  EXPECT_FALSE(parse_booksim("topology = mesh; vc_allocator = islip(2);", "file"));
  EXPECT_FALSE(parse_booksim("topology = mesh; sw_allocator = islip(0);", "file"));
}

}  // namespace
}  // namespace orrery::flit
