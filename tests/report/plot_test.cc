// SPDX-License-Identifier: Apache-2.0
#include "report/plot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "report/plot_axis.h"

namespace orrery::report {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

CsvTable table(const std::string& text) {
  return parse_csv(text, "t.csv").value();
}

std::size_t count(const std::string& text, const std::string& word) {
  std::size_t found = 0;
  for (auto at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    ++found;
  }
  return found;
}

TEST(PlotAxis, MarksAreRoundNumbersAroundTheValues) {
  // 0 to 7.3 in at most 8 steps: 1 each, up to 8.
  const PlotAxis axis(0, 7.3, false, 100, 200);
  EXPECT_THAT(axis.marks(), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8));
  EXPECT_DOUBLE_EQ(axis.place(0), 100);
  EXPECT_DOUBLE_EQ(axis.place(2), 125);
  EXPECT_DOUBLE_EQ(axis.place(8), 200);
}

TEST(PlotAxis, EqualFactorsAreEqualDistancesOnALogarithmicAxis) {
  const PlotAxis axis(3, 400, true, 0, 300);
  EXPECT_DOUBLE_EQ(axis.low(), 1);
  EXPECT_NEAR(axis.place(10), 100, 1e-9);
  EXPECT_NEAR(axis.place(100), 200, 1e-9);
  EXPECT_THAT(axis.marks(), ElementsAre(1, 2, 5, 10, 20, 50, 100, 200, 500, 1000));
}

TEST(PlotAxis, AllValuesAlikeStillHaveAnAxis) {
  EXPECT_TRUE(std::isfinite(PlotAxis(0, 0, false, 0, 1).place(0)));
  EXPECT_TRUE(std::isfinite(PlotAxis(10, 10, true, 0, 1).place(10)));
}

RC_GTEST_PROP(PlotAxis, EveryValueIsOnTheAxisAndMarksAreFew, ()) {
  const double low = *rc::gen::inRange(-1000, 1000) * std::pow(10, *rc::gen::inRange(-9, 9));
  const double high = low + *rc::gen::inRange(0, 1000) * std::pow(10, *rc::gen::inRange(-9, 9));
  const PlotAxis axis(low, high, false, 0, 1);
  RC_ASSERT(axis.place(low) >= -1e-6);
  RC_ASSERT(axis.place(high) <= 1 + 1e-6);
  RC_ASSERT(axis.marks().size() >= 2U);
  RC_ASSERT(axis.marks().size() <= 11U);
}

TEST(Plot, ABarsHeightIsItsValue) {
  // The axis goes from 0 to 4 over 326 points: 2 is half of that, 4 all of it.
  const Plot plot = fill({.kind = PlotKind::bars}, table("case,a,b\none,2,4\ntwo,,1\n")).value();
  const std::string svg = to_svg(plot);
  EXPECT_THAT(svg, HasSubstr("height=\"163.0\" fill=\"#0072b2\"><title>a: 2</title>"));
  EXPECT_THAT(svg, HasSubstr("height=\"326.0\" fill=\"#e69f00\"><title>b: 4</title>"));
  EXPECT_EQ(count(svg, "<title>"), 3U);  // an empty cell has no bar
  EXPECT_THAT(svg, HasSubstr(">two</text>"));
}

TEST(Plot, ALineHasAPointPerRowAndColumnsAreItsSeries) {
  const Plot plot = fill({.title = "a < b & c"}, table("x,a,b\n1,2,4\n10,3,5\n100,4,\n")).value();
  EXPECT_EQ(plot.x_label, "x");
  const std::string svg = to_svg(plot);
  EXPECT_EQ(count(svg, "<polyline"), 2U);
  EXPECT_EQ(count(svg, "<circle"), 5U);
  EXPECT_THAT(svg, HasSubstr("a &lt; b &amp; c"));
  EXPECT_THAT(svg, Not(HasSubstr("a < b")));
}

TEST(Plot, WhatCannotBeDrawnIsNamedByLineAndColumn) {
  const auto mistakes = [](const Plot& plot, const std::string& text) {
    const auto filled = fill(plot, table(text));
    return filled ? std::string() : filled.error().to_string();
  };
  EXPECT_THAT(mistakes({}, "x,a\n1,many\nzwei,3\n"), HasSubstr("t.csv:2: a: found 'many'"));
  EXPECT_THAT(mistakes({}, "x,a\n1,many\nzwei,3\n"), HasSubstr("t.csv:3: x: found 'zwei'"));
  EXPECT_THAT(mistakes({.log_y = true}, "x,a\n1,0\n"), HasSubstr("above 0"));
  EXPECT_THAT(mistakes({}, "x,a\n"), HasSubstr("two columns and a row"));
  EXPECT_THAT(mistakes({}, "x\n1\n"), HasSubstr("two columns and a row"));
}

TEST(Plot, CoordinatesAreNumbersOrTheInputIsRefused) {
  const auto huge = fill({}, table("x,a\n1,1e308\n2,-1e308\n"));
  ASSERT_FALSE(huge);
  EXPECT_THAT(huge.error().to_string(), HasSubstr("t.csv:2: a: found '1e308', expected 0 or a"));
  EXPECT_FALSE(fill({.log_y = true}, table("x,a\n1,1e-320\n2,1\n")));
  const std::string widest = to_svg(fill({}, table("x,a\n1,1e300\n2,-1e300\n")).value());
  EXPECT_THAT(widest, Not(HasSubstr("nan")));
  EXPECT_THAT(widest, Not(HasSubstr("inf")));
}

TEST(Plot, NamesAreTextOfAnXmlFile) {
  // A control character or a byte that is not UTF-8 makes a file that no viewer opens.
  const std::string svg = to_svg(fill({}, table("x,a\x1b[31m\xff\n1,1\n")).value());
  EXPECT_THAT(svg, HasSubstr("a\\x1b[31m\\xff"));
  EXPECT_THAT(svg, Not(HasSubstr("\x1b")));
  EXPECT_LT(to_svg(fill({}, table("x," + std::string(100'000, 'a') + "\n1,1\n")).value()).size(),
            20'000U);
}

TEST(Plot, OfLogarithmicBarsEachStandsOnTheAxis) {
  // 1 to 1000 over 326 points: 10 is a third.
  const Plot plot =
      fill({.kind = PlotKind::bars, .log_y = true}, table("n,a\none,10\ntwo,1000\nthree,1\n"))
          .value();
  EXPECT_THAT(to_svg(plot), HasSubstr("height=\"108.7\""));
  EXPECT_THAT(to_svg(plot), Not(HasSubstr("nan")));
}

}  // namespace
}  // namespace orrery::report
