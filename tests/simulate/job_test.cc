// SPDX-License-Identifier: Apache-2.0
// A compute node that what runs beside it slows down, and the book of a rank's time, by hand.
#include "simulate/job.h"

#include <gtest/gtest.h>

#include "simulate/ledger.h"

namespace orrery::simulate {
namespace {

/// Two kernels of 100 and 60 ps; collectives double the first and leave the second alone, messages
/// take half as long again of both.
struct TwoKernels {
  BoundTemplate shape;
  BoundNode node;

  TwoKernels() {
    shape.kernels = {
        {.work = Time(100), .slowdown = {1, 1.5, 2}, .after = {Time(60), Time(90), Time(60)}},
        {.work = Time(60), .slowdown = {1, 1.5, 1}, .after = {}}};
    node.kernel_count = 2;
  }
};

TEST(Job, RunsItsKernelsBackToBack) {
  const TwoKernels two;
  Job job;
  EXPECT_EQ(job.start(Time(10), Time(0), two.shape, two.node, Concurrent::nothing), Time(170));
  EXPECT_EQ(job.stall(Time(170)), Time(0));
  EXPECT_EQ(job.start(Time(10), Time(0), two.shape, two.node, Concurrent::collectives),
            Time(10 + 200 + 60));
  EXPECT_EQ(job.start(Time(10), Time(0), two.shape, two.node, Concurrent::messages),
            Time(10 + 150 + 90));
}

TEST(Job, WhatBeginsBesideItSlowsOnlyWhatIsLeft) {
  const TwoKernels two;
  Job job;
  job.start(Time(0), Time(0), two.shape, two.node, Concurrent::nothing);
  // 40 of the first kernel are done: the other 60 take 120, the second its own 60.
  EXPECT_EQ(job.change_speed(Time(40), Concurrent::collectives), Time(40 + 120 + 60));
  // It ends after 30 of those 120: 45 are left at full speed.
  EXPECT_EQ(job.change_speed(Time(70), Concurrent::nothing), Time(70 + 45 + 60));
}

TEST(Job, AChangeInTheSecondKernelLeavesTheFirstAsItRan) {
  const TwoKernels two;
  Job job;
  job.start(Time(0), Time(0), two.shape, two.node, Concurrent::collectives);  // 200, then 60
  EXPECT_EQ(job.change_speed(Time(230), Concurrent::nothing), Time(260));
  // 30 of the second are left, half as long again beside messages.
  EXPECT_EQ(job.change_speed(Time(230), Concurrent::messages), Time(230 + 45));
  EXPECT_EQ(job.stall(Time(275)), Time(0));
}

TEST(Job, TheHostLimitsItAndWhatItWaitedIsStall) {
  const TwoKernels two;
  Job job;
  EXPECT_EQ(job.start(Time(0), Time(500), two.shape, two.node, Concurrent::nothing), Time(500));
  EXPECT_EQ(job.stall(Time(500)), Time(340)) << "160 of kernels in 500";
  // The host's time is not slowed: 260 of kernels in the same 500.
  EXPECT_EQ(job.change_speed(Time(0), Concurrent::collectives), Time(500));
  EXPECT_EQ(job.stall(Time(500)), Time(240));
}

TEST(Job, WithoutKernelsOnlyTheHostTakesTime) {
  const BoundTemplate shape;
  Job job;
  EXPECT_EQ(job.start(Time(5), Time(8), shape, BoundNode{}, Concurrent::nothing), Time(8));
  EXPECT_EQ(job.start(Time(5), Time(0), shape, BoundNode{}, Concurrent::nothing), Time(5));
}

/// A rank with one phase and the groups tp and dp, each exposed in a category of its own.
graph::Workload tables() {
  graph::Workload workload;
  workload.phases = {{"forward", ""}};
  workload.categories = {{"exposed tp", ""}, {"exposed dp", ""}};
  workload.groups.resize(2);
  workload.groups[0].category = graph::CategoryIndex(0);
  workload.groups[1].category = graph::CategoryIndex(1);
  return workload;
}

constexpr graph::PhaseIndex kForward(0);
constexpr graph::GroupIndex kTp(0);
constexpr graph::GroupIndex kDp(1);

// Rows: forward, host, exposed tp, exposed dp, bubble.
std::vector<Time> times(std::vector<std::int64_t> rows) {
  std::vector<Time> result;
  for (const std::int64_t row : rows) {
    result.push_back(Time(row));
  }
  return result;
}

TEST(Ledger, EveryInstantIsOneRow) {
  const graph::Workload workload = tables();
  const LedgerRows rows(workload);
  Ledger ledger(rows);
  ledger.begin_communication(Time(5), Concurrent::collectives, kDp);  // 5 of bubble
  ledger.begin_communication(Time(8), Concurrent::collectives, kTp);  // 3 of dp
  ledger.begin_compute(Time(12), kForward);                           // 4: the first of both is tp
  ledger.end_communication(Time(20), Concurrent::collectives,
                           kTp);          // 8 of forward, which hide both
  ledger.end_compute(Time(30), Time(2));  // 10 more, 2 of all 18 waiting for the host
  ledger.end_communication(Time(31), Concurrent::collectives, kDp);  // 1 of dp
  ledger.book(Time(40));                                             // 9 of bubble
  EXPECT_EQ(ledger.breakdown().time, times({16, 2, 4, 4, 14}));
  EXPECT_EQ(ledger.breakdown().hidden, times({8, 18}));
}

TEST(Ledger, CollectivesTakeMoreThanMessages) {
  const graph::Workload workload = tables();
  const LedgerRows rows(workload);
  Ledger ledger(rows);
  EXPECT_EQ(ledger.concurrent(), Concurrent::nothing);
  ledger.begin_communication(Time(0), Concurrent::messages, kTp);
  EXPECT_EQ(ledger.concurrent(), Concurrent::messages);
  ledger.begin_communication(Time(0), Concurrent::collectives, kDp);
  EXPECT_EQ(ledger.concurrent(), Concurrent::collectives);
  EXPECT_EQ(ledger.concurrent_without({.active = {0, 0, 1}}), Concurrent::messages);
}

// A chain that runs alone from 0 to 10: 6 of forward, 1 of host, 3 of exposed tp, which 2 of the 6
// hide. What is booked still to come at its begin is that, at its end nothing.
TEST(Ledger, SkippingAChainBooksWhatItBooksAlone) {
  const graph::Workload workload = tables();
  const LedgerRows rows(workload);
  const std::vector<Time> from = times({6, 1, 3, 0, 0, 2, 0});  // categories, then groups
  const std::vector<Time> to = times({0, 0, 0, 0, 0, 0, 0});

  Ledger alone(rows);
  alone.skip(Time(10), from, to);
  std::vector<Time> booked;
  alone.append_to(booked);
  EXPECT_EQ(booked, from);
  EXPECT_EQ(alone.size(), from.size());
  EXPECT_EQ(alone.last(), Time(10));

  // dp runs all the while: it is hidden behind the 7 of compute and host; tp, exposed, stays first.
  Ledger beside_dp(rows);
  beside_dp.begin_communication(Time(0), Concurrent::collectives, kDp);
  beside_dp.skip(Time(10), from, to);
  EXPECT_EQ(beside_dp.breakdown().time, times({6, 1, 3, 0, 0}));
  EXPECT_EQ(beside_dp.breakdown().hidden, times({2, 7}));

  // A chain with exposed dp beside tp of somebody else: the first category counts.
  const std::vector<Time> waits = times({6, 0, 0, 3, 1, 0, 2});
  Ledger beside_tp(rows);
  beside_tp.begin_communication(Time(0), Concurrent::collectives, kTp);
  beside_tp.skip(Time(10), waits, to);
  EXPECT_EQ(beside_tp.breakdown().time, times({6, 0, 4, 0, 0}));
  EXPECT_EQ(beside_tp.breakdown().hidden, times({6, 2}));
}

TEST(Ledger, ARepeatedPeriodIsBookedAsOftenAsItRan) {
  const graph::Workload workload = tables();
  const LedgerRows rows(workload);
  Ledger ledger(rows);
  const Breakdown before = ledger.breakdown();
  ledger.begin_compute(Time(0), kForward);
  ledger.end_compute(Time(7), Time(0));
  ledger.book(Time(10));  // a period of 10: 7 of forward, 3 of bubble
  const Breakdown after = ledger.breakdown();
  ledger.shift(Time(40), before, after, 4);
  EXPECT_EQ(ledger.last(), Time(50));
  EXPECT_EQ(ledger.breakdown().time, times({35, 0, 0, 0, 15}));
}

}  // namespace
}  // namespace orrery::simulate
