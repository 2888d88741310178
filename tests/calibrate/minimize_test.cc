// SPDX-License-Identifier: Apache-2.0
#include "calibrate/minimize.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <cmath>

namespace orrery::calibrate {
namespace {

constexpr std::array<Bounds, 2> kBox{{{-2, 2}, {-1, 3}}};

/// Rosenbrock's valley; 0 at (1, 1) only.
double valley(std::span<const double> x) {
  return 100 * std::pow(x[1] - x[0] * x[0], 2) + std::pow(1 - x[0], 2);
}

TEST(Minimize, FindsTheEndOfRosenbrocksValley) {
  const Minimum found = minimize(valley, kBox, std::array{-1.2, 1.0});
  EXPECT_NEAR(found.at[0], 1, 1e-3);
  EXPECT_NEAR(found.at[1], 1, 1e-3);
  EXPECT_EQ(found.loss, valley(found.at));
}

TEST(Minimize, CrossesStepsThatHaveNoSlope) {
  // Steps of 0.1 down to 0 around (0.5, 0.5).
  const auto steps = [](std::span<const double> x) {
    return std::floor(10 * (std::abs(x[0] - 0.5) + std::abs(x[1] - 0.5)));
  };
  EXPECT_EQ(minimize(steps, kBox, std::array{-2.0, 3.0}).loss, 0);
}

TEST(Minimize, StaysInTheBox) {
  const auto slope = [](std::span<const double> x) { return x[0] - x[1]; };
  const Minimum found = minimize(slope, kBox, std::array{0.0, 0.0});
  EXPECT_NEAR(found.at[0], -2, 1e-6);
  EXPECT_NEAR(found.at[1], 3, 1e-6);
}

RC_GTEST_PROP(Minimize, NeverWorseThanTheStartAndAlwaysTheSame, ()) {
  const std::array start{*rc::gen::inRange(-200, 200) / 100.0,
                         *rc::gen::inRange(-100, 300) / 100.0};
  const Minimum once = minimize(valley, kBox, start, 2);
  RC_ASSERT(once.loss <= valley(start));
  RC_ASSERT(minimize(valley, kBox, start, 2).at == once.at);
}

TEST(Rounded, HasSoManyDigitsAndIsAlwaysANumber) {
  EXPECT_DOUBLE_EQ(rounded(0.0123456, 3), 0.0123);
  EXPECT_DOUBLE_EQ(rounded(-98765, 2), -99000);
  EXPECT_EQ(rounded(0, 3), 0);
  EXPECT_EQ(rounded(1e-315, 3), 1e-315);  // times 10^317, which no double is, would be no number
}

}  // namespace
}  // namespace orrery::calibrate
