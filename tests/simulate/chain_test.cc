// SPDX-License-Identifier: Apache-2.0
// What a chain is and when it ends (tests/property/shortcuts_test.cc: that chains change no time).
#include "simulate/chain.h"

#include <gtest/gtest.h>

#include "builder.h"

namespace orrery::simulate {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace): the builders of this test

/// A template of one role on two ranks of tp, bound; kernels lose half of the memory to
/// collectives.
struct Bound {
  graph::Workload workload;
  machine::Machine machine;
  collective::AlgorithmChoice algorithms;
  Binding bound;

  explicit Bound(std::vector<graph::Node> nodes, Time host_dispatch = Time(0))
      : workload(workload_of({{{plan::Axis::tp, 2}, {plan::Axis::dp, 1}, {plan::Axis::pp, 1}}},
                             {std::move(nodes)})),
        machine(machine_of({dimension(topology::DimensionKind::switched, 2)})),
        bound(workload, machine, algorithms) {
    machine.device.overlap_memory = 0.5;
    workload.host_dispatch = host_dispatch;
  }
  const BoundTemplate& shape() { return bound.shape(0, 0); }
  std::vector<bool> serial() const {
    return serial_streams(workload.programs[0].templates, workload.streams.size());
  }
  /// Finds the chains with collectives that take `alone` on their links; none: others disturb them.
  ChainTable chains(std::optional<Time> alone) {
    return find_chains(shape(), LedgerRows(workload), serial(),
                       [&](const BoundNode&) { return alone; });
  }
};

/// Nothing but the chain's own collectives runs, apart from `outside`.
struct Book {
  Concurrent outside = Concurrent::nothing;
  int collectives = 0;

  void begin_compute(Time, const BoundNode&) {}
  void end_compute(Time, const Job&) {}
  void begin_collective(Time, const BoundNode&) { ++collectives; }
  void end_collective(Time, const BoundNode&) { --collectives; }
  Concurrent concurrent() const { return collectives > 0 ? Concurrent::collectives : outside; }
};

/// Returns the end of a chain that runs from 0 on, with a host that is free at `host`.
Time end_of(const Chain& chain, const BoundTemplate& shape, Concurrent concurrent,
            Time host = Time(0)) {
  ChainRun run;
  run.chain = &chain;
  Job job;
  Book book{.outside = concurrent};
  ChainWalk<Book>(chain, shape, run.place, job, host, book).begin(Time(0));
  return chain_end(run, shape, job, host, concurrent, false);
}

using Places = std::vector<std::int32_t>;

TEST(Chains, KernelsThatNobodyWaitsForAreOne) {
  Bound of({compute_node("a", 1_ms), compute_node("b", 2_ms), compute_node("c", 3_ms)});
  const ChainTable table = of.chains(std::nullopt);
  EXPECT_EQ(table.at, (Places{0, -1, -1}));
  ASSERT_EQ(table.chains.size(), 1U);
  EXPECT_EQ(table.chains[0].count, 3U);
  EXPECT_EQ(end_of(table.chains[0], of.shape(), Concurrent::nothing), 6_ms);
  // Half of the memory bandwidth is left: twice as long.
  EXPECT_EQ(end_of(table.chains[0], of.shape(), Concurrent::collectives), 12_ms);
}

TEST(Chains, EndWhereSomethingOutsideWaits) {
  // The send needs b, no more: c and d are a chain of their own.
  Bound of({compute_node("a", 1_ms), compute_node("b", 1_ms),
            send("out", plan::Channel::forward, 64_B, {1}), compute_node("c", 1_ms),
            compute_node("d", 1_ms)});
  EXPECT_EQ(of.chains(std::nullopt).at, (Places{0, -1, -1, 1, -1}));
  // It needs a: a chain of a and b would send too late.
  Bound early({compute_node("a", 1_ms), compute_node("b", 1_ms), compute_node("c", 1_ms),
               send("out", plan::Channel::forward, 64_B, {0})});
  EXPECT_EQ(early.chains(std::nullopt).at, (Places{-1, 0, -1, -1}));
}

TEST(Chains, HoldCollectivesThatNothingDisturbs) {
  // 1 + 5 + 3 ms; where others share the links the collective is an event of its own.
  Bound of({compute_node("a", 1_ms), collective_node("reduce", plan::Axis::tp, 64_KiB, {0}),
            compute_node("b", 3_ms, {1})});
  const ChainTable table = of.chains(5_ms);
  ASSERT_EQ(table.at, (Places{0, -1, -1}));
  EXPECT_EQ(table.chains[0].lane_count, 2U);
  EXPECT_EQ(end_of(table.chains[0], of.shape(), Concurrent::nothing), 9_ms);
  EXPECT_TRUE(of.chains(std::nullopt).chains.empty());
}

TEST(Chains, OwnCollectivesSlowTheirKernelsDown) {
  // The collective runs from 1 to 5 ms; b does 2 of its 3 ms in that time and the third until 6; c
  // waits for both: 7 ms.
  Bound of({compute_node("a", 1_ms), collective_node("reduce", plan::Axis::tp, 64_KiB, {0}),
            compute_node("b", 3_ms), compute_node("c", 1_ms, {1})});
  const ChainTable table = of.chains(4_ms);
  ASSERT_EQ(table.at, (Places{0, -1, -1, -1}));
  EXPECT_EQ(end_of(table.chains[0], of.shape(), Concurrent::nothing), 7_ms);
}

TEST(Chains, DoNotHoldCollectivesThatCouldRunBeforeTheirInstance) {
  // Without a kernel to wait for, the next instance's could overtake the chain.
  Bound of({compute_node("a", 1_ms), compute_node("b", 1_ms),
            collective_node("reduce", plan::Axis::tp, 64_KiB), compute_node("c", 1_ms, {2})});
  EXPECT_FALSE(of.serial()[*plan::stream_of(plan::Axis::tp)]);
  EXPECT_EQ(of.chains(5_ms).at, (Places{0, -1, -1, -1}));
  EXPECT_EQ(of.chains(5_ms).chains[0].count, 2U);
}

TEST(Chains, AHostThatIsFreeWithinTheSlackIsInNobodysWay) {
  // The first kernel takes 10 us to issue, so the host must be free 10 us before the chain begins;
  // the second is not needed for another millisecond. Slack may be less than that, never more.
  Bound of({compute_node("a", 1_ms), compute_node("b", 1_ms)}, 10_us);
  const Chain chain = of.chains(std::nullopt).chains.at(0);
  EXPECT_LE(chain.slack, Time(0) - 10_us);
  EXPECT_GT(chain.slack, Time(0) - 50_us);
  EXPECT_EQ(end_of(chain, of.shape(), Concurrent::nothing, chain.slack), 2_ms);
  EXPECT_EQ(end_of(chain, of.shape(), Concurrent::nothing, Time(0) - 7_us), 2_ms + 3_us);
}

}  // namespace
}  // namespace orrery::simulate
