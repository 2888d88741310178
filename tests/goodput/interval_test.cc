// SPDX-License-Identifier: Apache-2.0
#include "goodput/interval.h"

#include <gtest/gtest.h>

#include <cmath>

namespace orrery::goodput {
namespace {

TEST(GoodputInterval, AStateThatCostsNothingToRestoreLosesCheckpointsAndWorkSinceThen) {
  // M 1 h, delta 60 s, R 0, tau 600 s: tau / (M (e^{660/3600} - 1)) = 600 / (3600 x 0.2012148) =
  // 0.82830.
  EXPECT_NEAR(expected_goodput({{Duration(3600), Duration(0)}}, {Duration(60)}, Duration(600)),
              600 / (3600 * 0.2012148), 1e-6);
}

TEST(GoodputInterval, ARestartDividesByItsOwnChanceToPass) {
  // e^{-R/M} with R = M / 2.
  const std::vector<StopKind> none = {{Duration(3600), Duration(0)}};
  const std::vector<StopKind> half = {{Duration(3600), Duration(1800)}};
  const CheckpointCost cost{Duration(60)};
  EXPECT_NEAR(
      expected_goodput(half, cost, Duration(600)) / expected_goodput(none, cost, Duration(600)),
      std::exp(-0.5), 1e-12);
}

TEST(GoodputInterval, KindsOfStopsAddTheirRates) {
  // 1/2 h + 1/3 h = 5/6 per hour; restarts of 0 and of 1.2 h = M: q = 0.6 + 0.4 / e.
  const std::vector<StopKind> kinds = {{Duration(7200), Duration(0)},
                                       {Duration(10800), Duration(4320)}};
  EXPECT_NEAR(mtbf_of(kinds).value(), 4320, 1e-9);
  const double alone =
      expected_goodput({{Duration(4320), Duration(0)}}, {Duration(60)}, Duration(600));
  EXPECT_NEAR(expected_goodput(kinds, {Duration(60)}, Duration(600)) / alone,
              0.6 + 0.4 / std::exp(1), 1e-12);
}

TEST(GoodputInterval, ALaterDurableCheckpointIsALongerRestart) {
  const CheckpointCost late{.holds = Duration(10), .persists = Duration(90)};
  EXPECT_DOUBLE_EQ(
      expected_goodput({{Duration(3600), Duration(300)}}, late, Duration(600)),
      expected_goodput({{Duration(3600), Duration(390)}}, {Duration(10)}, Duration(600)));
}

TEST(GoodputInterval, TheBestIntervalHasNoBetterNeighbour) {
  for (const double holds : {0.1, 1.0, 60.0, 900.0, 5000.0}) {
    const CheckpointCost cost{Duration(holds)};
    const std::vector<StopKind> kinds = {{Duration(3600), Duration(300)}};
    const Duration best = best_interval(Duration(3600), cost);
    const double top = expected_goodput(kinds, cost, best);
    EXPECT_GE(top, expected_goodput(kinds, cost, best * 0.99));
    EXPECT_GE(top, expected_goodput(kinds, cost, best * 1.01));
  }
}

TEST(GoodputInterval, DalysHigherOrderIsWithinAPercentOfTheBestUpToATwentiethOfTheMtbf) {
  for (double share = 1e-5; share <= 0.05; share *= 1.3) {
    const Duration mtbf(10000);
    const Duration best = best_interval(mtbf, {mtbf * share});
    EXPECT_NEAR(daly_interval(mtbf, mtbf * share) / best, 1, 0.01) << share;
  }
}

TEST(GoodputInterval, YoungAndDalyDifferBySixPercentAtAMinuteAndAnHour) {
  // sqrt(2 x 60 x 3600) = 657.267; Daly: 657.267 (1 + 0.0912871 / 3 + 0.00833333 / 9) - 60 =
  // 617.876.
  EXPECT_NEAR(young_interval(Duration(3600), Duration(60)).value(), 657.267, 1e-3);
  EXPECT_NEAR(daly_interval(Duration(3600), Duration(60)).value(), 617.876, 1e-2);
  EXPECT_EQ(daly_interval(Duration(100), Duration(200)), Duration(100));
}

TEST(GoodputInterval, AnIntervalEndsNoSoonerThanItsCheckpointIsDurable) {
  EXPECT_EQ(best_interval(Duration(3600), {.holds = Duration(1), .persists = Duration(900)}),
            Duration(899));
}

TEST(GoodputInterval, AtTheBreakEvenTheGoodputIsWhatWasAskedFor) {
  const CheckpointCost cost{Duration(60)};
  for (const double share : {0.1, 0.5, 0.9, 0.99}) {
    const Duration mtbf = break_even_mtbf(Duration(300), cost, share);
    EXPECT_NEAR(expected_goodput({{mtbf, Duration(300)}}, cost, best_interval(mtbf, cost)), share,
                1e-9);
  }
}

}  // namespace
}  // namespace orrery::goodput
