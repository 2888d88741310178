// SPDX-License-Identifier: Apache-2.0
#include "machine/network/flit/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "machine/network/flit/deadlock.h"
#include "machine/network/flit/open_loop.h"

namespace orrery::flit {
namespace {

Cycle latency_of(const RouterGraph& graph, const RouterSettings& settings, std::uint32_t from,
                 std::uint32_t to, std::uint32_t flits) {
  const auto routing = Routing::make(graph, default_algorithm(graph.shape), settings.vcs);
  Engine engine(graph, *routing, settings, 1);
  engine.offer(from, {.target = to, .flits = flits});
  while (engine.arrived().empty() && engine.now() < 100'000) {
    engine.step();
  }
  return engine.now() - 1;
}

TEST(FlitEngine, AnIdleNetworkTakesFourCyclesForEachRouterAndTwo) {
  // 1 + 1 to the first router's buffer, 3 in each router, 1 on each link: 4H + 2.
  const RouterGraph line = make_grid(Shape::mesh, {8});
  for (std::uint32_t routers = 1; routers <= 8; ++routers) {
    EXPECT_EQ(latency_of(line, {}, 0, routers - 1, 1), 4 * routers + 2);
  }
}

TEST(FlitEngine, FurtherFlitsFollowOnePerCycle) {
  // 8 flits over 3 routers: 4*3 + 2 + 7. The credit of a buffer of 8 is back after 7 cycles.
  EXPECT_EQ(latency_of(make_grid(Shape::mesh, {8}), {}, 0, 2, 8), 4 * 3 + 2 + 7);
}

TEST(FlitEngine, DelaysAddUpInEveryRouter) {
  // Routing 2 and VC allocation 3 in place of 0 and 1: 4 cycles more in each of 3 routers.
  const RouterSettings slow{.routing_delay = 2, .vc_alloc_delay = 3};
  EXPECT_EQ(latency_of(make_grid(Shape::mesh, {8}), slow, 0, 2, 1), 4 * 3 + 2 + 3 * 4);
}

TEST(FlitEngine, ABufferSmallerThanTheRoundTripSlowsAPacketDown) {
  // The credit of a flit granted at g is usable at the router before when the flit has gone on:
  // downstream at g + 3, away at g + 3 (body), usable at g + 3 + 4. 2 flits each 7 cycles.
  const RouterSettings one_vc{.vcs = 1, .buffer = 2};
  const Cycle flits = 20;
  const Cycle fast = 4 * 2 + 2 + flits - 1;
  const Cycle taken = latency_of(make_grid(Shape::mesh, {2}), one_vc, 0, 1, flits);
  EXPECT_GE(taken, fast + (flits / 2 - 1) * 5);
  EXPECT_LE(taken, fast + flits / 2 * 5);
}

TEST(FlitEngine, ARouterOfTwoStepsACycleAllocatesVcAndSwitchInOne) {
  // In the buffer at t: VC and switch at t, through the switch at t + 1, in the next buffer at
  // t + 3: 3H + 2. Three steps also pass the switch in that cycle: 2H + 2.
  const RouterGraph line = make_grid(Shape::mesh, {8});
  for (std::uint32_t routers = 1; routers <= 8; ++routers) {
    EXPECT_EQ(latency_of(line, {.internal_speedup = 2}, 0, routers - 1, 1), 3 * routers + 2);
    EXPECT_EQ(latency_of(line, {.internal_speedup = 3}, 0, routers - 1, 1), 2 * routers + 2);
  }
  // The link still passes one flit a cycle.
  EXPECT_EQ(latency_of(line, {.internal_speedup = 2}, 0, 2, 8), 3 * 3 + 2 + 7);
}

TEST(FlitEngine, SpeculationSavesACycleInEveryRouter) {
  // VC and switch in one allocation: 3H + 2 for 4H + 2, with both kinds, and not where a head may
  // speculate only on requests of nobody (no credit is looked for without a free VC).
  const RouterGraph line = make_grid(Shape::mesh, {8});
  for (std::uint32_t routers = 1; routers <= 8; ++routers) {
    for (const Speculation kind : {Speculation::priority, Speculation::separate}) {
      EXPECT_EQ(latency_of(line, {.speculation = kind}, 0, routers - 1, 1), 3 * routers + 2);
      EXPECT_EQ(latency_of(line, {.speculation = kind}, 0, routers - 1, 5), 3 * routers + 2 + 4);
    }
    EXPECT_EQ(latency_of(line, {.speculation = Speculation::priority, .spec_check_vc = false}, 0,
                         routers - 1, 1),
              4 * routers + 2);
  }
}

/// Cycle in which the last of two packets of one flit arrives that leave nodes 0 and 2 for node 1.
Cycle two_to_one(const RouterSettings& settings) {
  const RouterGraph line = make_grid(Shape::mesh, {3});
  const auto routing = Routing::make(line, Algorithm::dor, settings.vcs);
  Engine engine(line, *routing, settings, 1);
  engine.offer(0, {.target = 1});
  engine.offer(2, {.target = 1});
  while (engine.packets_in_flight() > 0) {
    engine.step();
  }
  return engine.now() - 1;
}

TEST(FlitEngine, SwitchOutputsTakeTwoFlitsButTheLinkOneACycle) {
  // Both are in the router of node 1 at once, over 2 routers 4 x 2 + 2 = 10. The second leaves the
  // switch a cycle later, or with an output_speedup of 2 (inputs 0 and 1) the output: 11 each way.
  EXPECT_EQ(two_to_one({}), 11);
  EXPECT_EQ(two_to_one({.output_speedup = 2}), 11);
  const RouterGraph mesh = make_grid(Shape::mesh, {4, 4});
  EXPECT_EQ(latency_of(mesh, {.output_speedup = 2}, 0, 15, 1), 4 * 7 + 2);
}

OpenLoopResult run(const RouterGraph& graph, Algorithm algorithm, const RouterSettings& router,
                   const std::string& pattern, const OpenLoopSettings& load, bool skip = true) {
  const auto routing = Routing::make(graph, algorithm, router.vcs);
  const auto traffic = Traffic::make(pattern, graph);
  EXPECT_TRUE(routing && traffic);
  return run_open_loop(graph, *routing, router, *traffic, load, {.skip = skip});
}

OpenLoopSettings short_run(double rate, int packet = 1) {
  return {.rate = rate, .packet = packet, .sample_period = 200, .warmup_periods = 1};
}

TEST(FlitEngine, SkippingIdleCyclesChangesNothing) {
  const RouterGraph mesh = make_grid(Shape::mesh, {4, 4});
  for (const double rate : {0.002, 0.2}) {
    const OpenLoopResult fast = run(mesh, Algorithm::dor, {}, "uniform", short_run(rate, 3));
    const OpenLoopResult all = run(mesh, Algorithm::dor, {}, "uniform", short_run(rate, 3), false);
    EXPECT_EQ(fast.packet_latency, all.packet_latency);
    EXPECT_EQ(fast.flit_hops, all.flit_hops);
    EXPECT_EQ(fast.cycles, all.cycles);
  }
}

TEST(FlitEngine, SkippingChangesNothingWhateverTheAllocator) {
  for (const Allocator allocator :
       {Allocator::wavefront, Allocator::pim, Allocator::loa, Allocator::max_size}) {
    const RouterSettings router{.vc_allocator = allocator, .sw_allocator = allocator};
    const RouterGraph mesh = make_grid(Shape::mesh, {4, 4});
    const OpenLoopResult skipped =
        run(mesh, Algorithm::dor, router, "uniform", short_run(0.01, 3), true);
    const OpenLoopResult stepped =
        run(mesh, Algorithm::dor, router, "uniform", short_run(0.01, 3), false);
    EXPECT_EQ(skipped.packet_latency, stepped.packet_latency) << name_of(allocator);
    EXPECT_EQ(skipped.cycles, stepped.cycles) << name_of(allocator);
  }
}

TEST(FlitEngine, OneSeedGivesOneResultAnotherGivesAnother) {
  const RouterGraph torus = make_grid(Shape::torus, {4, 4});
  OpenLoopSettings load = short_run(0.3);
  const OpenLoopResult first = run(torus, Algorithm::dor, {}, "uniform", load);
  EXPECT_EQ(first.flit_latency, run(torus, Algorithm::dor, {}, "uniform", load).flit_latency);
  load.seed = 2;
  EXPECT_NE(first.flit_latency, run(torus, Algorithm::dor, {}, "uniform", load).flit_latency);
}

struct Offered {
  const char* topology;
  Algorithm algorithm;
};

/// Every routing and allocator delivers everything, at no less than the idle latency.
TEST(FlitEngine, EveryRoutingDeliversAllThatIsOffered) {
  for (const Offered& on :
       std::initializer_list<Offered>{{"mesh:4x4", Algorithm::dor},
                                      {"mesh:4x4", Algorithm::yx},
                                      {"mesh:4x4", Algorithm::o1turn},
                                      {"mesh:4x4", Algorithm::romm},
                                      {"mesh:4x4", Algorithm::valiant},
                                      {"mesh:4x4", Algorithm::adaptive},
                                      {"mesh:3x3x3", Algorithm::up_down},
                                      {"torus:4x4", Algorithm::dor},
                                      {"torus:4x4", Algorithm::valiant},
                                      {"torus:5x3", Algorithm::adaptive},
                                      {"torus:2x2x2", Algorithm::dor},
                                      {"fat_tree:k=2,n=3", Algorithm::nca},
                                      {"fat_tree:k=2,n=3", Algorithm::up_down},
                                      {"fly:k=2,n=3", Algorithm::dest_tag},
                                      {"fly:k=8,n=1", Algorithm::dest_tag},
                                      {"flattened_butterfly:3x3,c=2", Algorithm::dor},
                                      {"dragonfly:p=1,a=2,h=1", Algorithm::min},
                                      {"dragonfly:p=2,a=3,h=1", Algorithm::up_down},
                                      {"cmesh:4x4,c=4", Algorithm::dor},
                                      {"cmesh:4x4,c=4,express=1", Algorithm::dor},
                                      {"cmesh:4x4,c=1,express=1", Algorithm::o1turn},
                                      {"qtree:k=2,n=3", Algorithm::nca},
                                      {"tree4:k=4", Algorithm::nca},
                                      {"tree4:k=2", Algorithm::up_down},
                                      {"switch_clusters:n=2,p=4,links=2", Algorithm::nca}}) {
    const auto graph = parse_network(on.topology);
    ASSERT_TRUE(graph) << on.topology;
    for (const Allocator allocator :
         {Allocator::separable_input_first, Allocator::separable_output_first, Allocator::islip,
          Allocator::wavefront, Allocator::pim, Allocator::loa, Allocator::max_size}) {
      const RouterSettings router{.vc_allocator = allocator,
                                  .sw_allocator = allocator,
                                  .alloc_iters = allocator == Allocator::islip ? 2 : 1};
      const OpenLoopResult result = run(*graph, on.algorithm, router, "uniform", short_run(0.1, 2));
      EXPECT_TRUE(result.stable) << on.topology << " " << name_of(on.algorithm) << result.reason;
      EXPECT_GT(result.packets, 20U) << on.topology;
      EXPECT_GE(result.network_latency, 4 * result.hops + 2 + 1 - 1e-9) << on.topology;
      EXPECT_LE(result.network_latency, 4 * result.hops + 8)
          << on.topology << name_of(on.algorithm);
    }
  }
}

RC_GTEST_PROP(FlitEngine, AnyRouterDeliversAllThatIsOffered, ()) {
  const auto speculation =
      *rc::gen::element(Speculation::none, Speculation::priority, Speculation::separate);
  const int longest = speculation == Speculation::none ? 3 : 2;
  const RouterSettings router{
      .vcs = *rc::gen::inRange(2, 9),
      .buffer = *rc::gen::inRange(4, 12),
      .routing_delay = *rc::gen::inRange(0, 3),
      .vc_alloc_delay = *rc::gen::inRange(1, longest),
      .sw_alloc_delay = *rc::gen::inRange(1, longest),
      .st_final_delay = *rc::gen::inRange(0, 3),
      .credit_delay = *rc::gen::inRange(0, 4),
      .vc_allocator = *rc::gen::element(Allocator::separable_input_first, Allocator::wavefront,
                                        Allocator::pim, Allocator::max_size),
      .sw_allocator = *rc::gen::element(Allocator::islip, Allocator::wavefront, Allocator::loa),
      .vc_arbiter = *rc::gen::element(Arbiter::round_robin, Arbiter::matrix),
      .sw_arbiter = *rc::gen::element(Arbiter::round_robin, Arbiter::matrix),
      .speculation =
          *rc::gen::element(Speculation::none, Speculation::priority, Speculation::separate),
      .spec_check_vc = *rc::gen::arbitrary<bool>(),
      .spec_check_credit = *rc::gen::arbitrary<bool>(),
      .spec_mask_by_requests = *rc::gen::arbitrary<bool>(),
      .vc_busy_when_full = *rc::gen::arbitrary<bool>(),
      .vc_prioritize_empty = *rc::gen::arbitrary<bool>(),
      .priority = *rc::gen::element(Priority::none, Priority::age, Priority::hop_count,
                                    Priority::queue_length),
      .input_speedup = *rc::gen::inRange(1, 3),
      .output_speedup = *rc::gen::inRange(1, 4),
      .internal_speedup = *rc::gen::element(1.0, 1.5, 2.0),
      .hold_switch_for_packet = *rc::gen::arbitrary<bool>(),
      .wait_for_tail_credit = *rc::gen::arbitrary<bool>(),
      .flow_control = *rc::gen::element(FlowControl::wormhole, FlowControl::cut_through)};
  const RouterGraph torus = make_grid(Shape::torus, {3, 4});
  const OpenLoopResult result =
      run(torus, Algorithm::dor, router, "uniform", short_run(0.02, *rc::gen::inRange(1, 5)));
  RC_ASSERT(result.stable);
}

TEST(FlitEngine, ADeadlockIsNamedBufferByBuffer) {
  // A ring with one VC: packets of 8 flits over 3 links, from all nodes at once, wait in a circle.
  RouterGraph ring = make_grid(Shape::torus, {8});
  ring.shape = Shape::graph;
  const OpenLoopResult result =
      run(ring, Algorithm::min, {.vcs = 1, .buffer = 2}, "tornado", {.rate = 0.9, .packet = 8});
  EXPECT_FALSE(result.stable);
  EXPECT_TRUE(result.deadlocked);
  EXPECT_THAT(result.reason, ::testing::HasSubstr("waits for (router"));
}

TEST(FlitEngine, AnOverloadedNetworkIsUnstableNotDeadlocked) {
  const OpenLoopResult result =
      run(make_grid(Shape::mesh, {8}), Algorithm::dor, {}, "bit_complement", {.rate = 0.9});
  EXPECT_FALSE(result.stable);
  EXPECT_FALSE(result.deadlocked);
  // All 4 nodes of a half send over the one link between the halves: a quarter of a flit each.
  EXPECT_LT(result.accepted, 0.26);
  EXPECT_GT(result.accepted, 0.12);
}

TEST(FlitEngine, ACrossbarOfTwoStepsACycleIsNotLimitedByItsSwitch) {
  // 10 x 10, uniform: inputs that ask for one output at a time accept some 0.63 at full load (1 -
  // 1/e of outputs are asked for); with a speed-up of 2 the links are the limit (Dally & Towles
  // 2004, section 17.5).
  const RouterGraph crossbar = make_fly(10, 1);
  const RouterSettings router{.vcs = 8};
  RouterSettings fast = router;
  fast.internal_speedup = 2;
  const OpenLoopSettings load{.rate = 1, .latency_limit = 1e9};
  const double slow = run(crossbar, Algorithm::dest_tag, router, "uniform", load).accepted;
  EXPECT_NEAR(slow, 0.63, 0.03);
  EXPECT_GT(run(crossbar, Algorithm::dest_tag, fast, "uniform", load).accepted, 0.9);
}

TEST(FlitEngine, APacketThatHoldsTheSwitchIsNotInterleaved) {
  // Nodes 0 and 1 of a crossbar send packets of 8 flits to node 2 at once: held, the first is
  // through after 6 + 7 cycles, the second 8 later; else the two take turns.
  const auto last_of_first = [](bool holds) {
    const RouterGraph crossbar = make_fly(3, 1);
    const RouterSettings router{.hold_switch_for_packet = holds};
    const auto routing = Routing::make(crossbar, Algorithm::dest_tag, router.vcs);
    Engine engine(crossbar, *routing, router, 1);
    engine.offer(0, {.target = 2, .flits = 8});
    engine.offer(1, {.target = 2, .flits = 8});
    std::vector<Cycle> ends;
    while (ends.size() < 2) {
      engine.step();
      ends.insert(ends.end(), engine.arrived().size(), engine.now() - 1);
    }
    EXPECT_EQ(ends[1], 6 + 15);
    return ends[0];
  };
  EXPECT_EQ(last_of_first(true), 6 + 7);
  EXPECT_EQ(last_of_first(false), 6 + 14);
}

}  // namespace
}  // namespace orrery::flit
