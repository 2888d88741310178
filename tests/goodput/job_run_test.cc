// SPDX-License-Identifier: Apache-2.0
#include "goodput/job_run.h"

#include <gtest/gtest.h>

#include <limits>

namespace orrery::goodput {
namespace {

constexpr Duration kHour{3600};
constexpr Duration kDay{86400};
constexpr Duration kForever{std::numeric_limits<double>::infinity()};

/// Stops of the whole job every `mtbf`, a minute to find one, four to restart.
Scenario job_of(Duration mtbf) {
  Scenario scenario;
  scenario.components = {{.name = "any",
                          .mtbf = mtbf,
                          .per = Unit::job,
                          .detection = Duration(60),
                          .restart = Duration(240)}};
  scenario.checkpoint.cost.holds = Duration(60);
  return scenario;
}

double expected(const Scenario& scenario) {
  return expected_goodput(scenario.stops(), scenario.checkpoint.cost, scenario.interval());
}

TEST(JobRun, ManyLivesKeepWhatTheExpressionSays) {
  // Of 200 lives of 90 days with a stop every 3.09 hours the mean is known to about 0.02 points.
  const Scenario scenario = job_of(Duration(3.09 * 3600));
  const Lives lives = run_lives(scenario, 90 * kDay, kForever, 200);
  EXPECT_NEAR(lives.goodput.mean, expected(scenario), 0.001);
  EXPECT_LT(lives.goodput.low, lives.goodput.mean);
  EXPECT_GT(lives.goodput.high, lives.goodput.mean);
  EXPECT_NEAR(lives.stops.mean, 90 * 24 / 3.09, 6);
}

TEST(JobRun, TheExpressionHoldsWhereRestartsAreLongAndCheckpointsLate) {
  // Two kinds, one of which takes as long to mend as stops are apart.
  Scenario scenario = job_of(2 * kHour);
  scenario.components.push_back(
      {.name = "slow", .mtbf = 6 * kHour, .per = Unit::job, .diagnosis = kHour});
  scenario.checkpoint.cost = {.holds = Duration(20), .persists = Duration(600)};
  EXPECT_NEAR(run_lives(scenario, 90 * kDay, kForever, 200).goodput.mean, expected(scenario),
              0.002);
}

TEST(JobRun, PartsOfTheTimeAddUpToIt) {
  Scenario scenario = job_of(kHour);
  scenario.devices = 64;
  scenario.spares = 1;
  scenario.repair = 5 * kHour;
  for (const WithoutSpare rule : {WithoutSpare::wait, WithoutSpare::shrink}) {
    scenario.without_spare = rule;
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      EXPECT_NEAR(run_job(scenario, 7 * kDay, kForever, seed).time.total() / (7 * kDay), 1, 1e-9);
    }
  }
}

TEST(JobRun, OneSeedIsOneRun) {
  const Scenario scenario = job_of(kHour);
  EXPECT_EQ(run_job(scenario, kDay, kForever, 7).time.kept,
            run_job(scenario, kDay, kForever, 7).time.kept);
  EXPECT_NE(run_job(scenario, kDay, kForever, 7).time.kept,
            run_job(scenario, kDay, kForever, 8).time.kept);
}

TEST(JobRun, HalfTheIntervalLosesHalfTheWork) {
  // C4's law: what is lost at a stop is half an interval on the mean, where stops are rare.
  Scenario scenario = job_of(10 * kHour);
  scenario.checkpoint.interval = Duration(1200);
  const Lives whole = run_lives(scenario, 300 * kDay, kForever, 100);
  scenario.checkpoint.interval = Duration(600);
  const Lives half = run_lives(scenario, 300 * kDay, kForever, 100);
  EXPECT_NEAR(half.time.lost / whole.time.lost, 0.5, 0.03);
}

TEST(JobRun, WorkThatNoStopMeetsTakesItselfAndItsCheckpoints) {
  // 10 h of work, a checkpoint of 60 s after each but the last hour: the tenth ends with the work.
  Scenario scenario = job_of(Duration(1e15));
  scenario.checkpoint.interval = kHour;
  const JobRun run = run_job(scenario, kForever, 10 * kHour - Duration(1), 1);
  EXPECT_EQ(run.all_stops(), 0);
  EXPECT_NEAR(run.time.total().value(), 36000 - 1 + 9 * 60, 1e-6);
  EXPECT_EQ(run.checkpoints, 9);
}

TEST(JobRun, WithoutASpareTheJobWaitsForTheRepair) {
  // One node, no spare, repairs of a day and stops every 10 days: it waits about 1 of 11 days.
  Scenario scenario = job_of(10 * kDay);
  scenario.devices = 8;
  scenario.spares = 0;
  scenario.repair = kDay;
  const Lives lives = run_lives(scenario, 3000 * kDay, kForever, 40);
  EXPECT_NEAR(lives.time.waiting / lives.time.total(), 1.0 / 11, 0.01);
  // Enough spares: none.
  scenario.spares = 100;
  EXPECT_EQ(run_lives(scenario, 300 * kDay, kForever, 5).time.waiting, Duration(0));
}

TEST(JobRun, ASmallerJobIsSlowerButDoesNotWait) {
  Scenario scenario = job_of(10 * kDay);
  scenario.devices = 64;  // 8 nodes
  scenario.spares = 0;
  scenario.repair = kDay;
  scenario.without_spare = WithoutSpare::shrink;
  const Lives lives = run_lives(scenario, 3000 * kDay, kForever, 40);
  EXPECT_EQ(lives.time.waiting, Duration(0));
  // A node is missing for about a day of ten, which costs an eighth of that day.
  EXPECT_NEAR(lives.time.slower / lives.time.total(), 0.1 / 8, 0.002);
}

TEST(JobRun, StopsThatTakeMemoryFallBackToStorage) {
  // Every tenth checkpoint reaches storage: such a stop loses about five intervals more.
  Scenario scenario = job_of(10 * kHour);
  scenario.checkpoint.interval = Duration(600);
  const Lives kept = run_lives(scenario, 300 * kDay, kForever, 40);
  scenario.checkpoint.storage_every = 10;
  scenario.components[0].survives_in_memory = false;
  const Lives fell = run_lives(scenario, 300 * kDay, kForever, 40);
  const double more = (fell.time.lost - kept.time.lost).value() / (fell.stops.mean * 40);
  EXPECT_NEAR(more, 4.5 * 600, 200);
}

}  // namespace
}  // namespace orrery::goodput
