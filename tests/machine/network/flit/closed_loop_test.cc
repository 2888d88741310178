// SPDX-License-Identifier: Apache-2.0
#include "machine/network/flit/closed_loop.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "machine/network/flit/experiment.h"

namespace orrery::flit {
namespace {

Prepared network(const std::string& topology, const std::string& routing = "") {
  Experiment experiment;
  experiment.topology = topology;
  experiment.routing = routing;
  auto made = prepare(experiment);
  EXPECT_TRUE(made) << made.error().to_string();
  return std::move(*made);
}

LoopEvent message(std::uint32_t source, std::uint32_t target, Bytes bytes,
                  std::vector<std::uint32_t> after = {}) {
  return {.source = source, .target = target, .bytes = bytes, .after = std::move(after)};
}

LoopEvent work(Cycle cycles, std::vector<std::uint32_t> after = {}) {
  return {.work = cycles, .after = std::move(after)};
}

TEST(ClosedLoop, MessagesAndWorkWaitForOneAnother) {
  // On a line of 4 links of a cycle, 16 VCs' buffers of 64: a message of 100 bytes is 2 flits and a
  // head; over one link F - 1 + 2 + 3 x 2 routers + 3 links = 13, seen by its successor then.
  const Prepared line = network("mesh:4");
  const RouterSettings router{.buffer = 64};
  const LoopSchedule schedule{message(0, 1, 100_B), work(7, {0}), message(1, 2, 100_B, {1}),
                              message(1, 3, 0_B, {0})};
  const LoopResult run = run_closed_loop(line.routing, router, {}, schedule, 1);
  EXPECT_EQ(run.ends[0], 13);
  EXPECT_EQ(run.ends[1], 13 + 7);
  EXPECT_EQ(run.ends[2], 13 + 7 + 1 + 13);     // released a cycle after the work
  EXPECT_EQ(run.ends[3], 13 + 2 + 3 * 3 + 4);  // a head over two links
  EXPECT_EQ(run.end, 34);
}

TEST(ClosedLoop, CircleOfBuffersIsNamed) {
  // Five wormholes longer than the buffers on their way of two links, all around a ring of 5 by the
  // shorter route: each holds the link that the one behind it wants.
  const Prepared ring = network("torus:5", "min");
  LoopSchedule schedule;
  for (std::uint32_t node = 0; node < 5; ++node) {
    schedule.push_back(message(node, (node + 2) % 5, 4000_B));
  }
  const LoopResult run =
      run_closed_loop(ring.routing, {.vcs = 1, .buffer = 1}, {.packet = 4000_B}, schedule, 1);
  EXPECT_NE(run.deadlock.find("deadlock"), std::string::npos) << run.deadlock;
}

/// Random schedules on random networks.
RC_GTEST_PROP(ClosedLoop, ShortcutsChangeNothing, ()) {
  const auto made = network(*rc::gen::element<std::string>(
      "mesh:3x3", "torus:4x2", "fat_tree:k=2,n=3", "switch_clusters:n=2,p=4,links=2", "mesh:5"));
  const auto nodes = static_cast<std::uint32_t>(made.graph->nodes.size());
  RouterSettings router{.vcs = 4, .buffer = 64, .credit_delay = 2};
  router.routing_delay = *rc::gen::inRange(0, 2);
  LoopSchedule schedule;
  for (int i = *rc::gen::inRange(1, 16); i > 0; --i) {
    std::vector<std::uint32_t> after;
    if (!schedule.empty() && *rc::gen::arbitrary<bool>()) {
      after.push_back(
          *rc::gen::inRange<std::uint32_t>(0, static_cast<std::uint32_t>(schedule.size())));
    }
    if (*rc::gen::inRange(0, 4) == 0) {
      schedule.push_back(work(*rc::gen::inRange(0, 40), std::move(after)));
    } else {
      schedule.push_back(message(*rc::gen::inRange<std::uint32_t>(0, nodes),
                                 *rc::gen::inRange<std::uint32_t>(0, nodes),
                                 Bytes(*rc::gen::element(0, 50, 300, 2000)), std::move(after)));
    }
  }
  const LoopResult fast = run_closed_loop(made.routing, router, {}, schedule, 1);
  const LoopResult all = run_closed_loop(made.routing, router, {}, schedule, 1, {false, {}});
  RC_ASSERT(fast.ends == all.ends);
  RC_ASSERT(fast.cycles_simulated <= all.cycles_simulated);
}

TEST(ClosedLoop, ABatchHasAtMostItsOutstandingPacketsInFlight) {
  // One at a time over 2 routers: each packet of one flit takes 3 x 2 + 3 links + 2 = 11 cycles.
  const Prepared line = network("mesh:2");
  Experiment pattern;
  pattern.topology = "mesh:2";
  pattern.pattern = "neighbor";
  const auto prepared = prepare(pattern);
  ASSERT_TRUE(prepared);
  const auto time = [&](int outstanding) {
    return run_closed_loop(line.routing, {}, {},
                           batch_schedule(prepared->traffic, 2, {10, outstanding, 0_B}, 1), 1)
        .end;
  };
  EXPECT_EQ(time(1), 10 * 11);
  EXPECT_LT(time(2), time(1));
  EXPECT_LE(time(0), time(4));
}

}  // namespace
}  // namespace orrery::flit
