// SPDX-License-Identifier: Apache-2.0
#include "machine/faults/faults.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace orrery::faults {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// 16 ranks in nodes of 4, a link up (rank) and one down (16 + rank) of each.
Places places() {
  Places places;
  places.ranks = 16;
  places.ranks_of_node = 4;
  places.links = 32;
  places.links_named = [](const std::string& name) {
    return name == "up3" ? std::vector<std::size_t>{3} : std::vector<std::size_t>{};
  };
  places.links_of_rank = [](std::int64_t rank) {
    return std::vector<std::size_t>{static_cast<std::size_t>(rank),
                                    static_cast<std::size_t>(16 + rank)};
  };
  places.link_example = "up3";
  return places;
}

Schedule made(const std::string& text) {
  const auto plan = parse_faults(text, "faults.yaml");
  EXPECT_TRUE(plan) << plan.error().to_string();
  const auto schedule = schedule_of(*plan, places());
  EXPECT_TRUE(schedule) << schedule.error().to_string();
  return *schedule;
}

std::string mistakes_of(const std::string& text) {
  const auto plan = parse_faults(text, "faults.yaml");
  if (!plan) {
    return plan.error().to_string();
  }
  const auto schedule = schedule_of(*plan, places());
  return schedule ? "" : schedule.error().to_string();
}

TEST(Faults, OverlappingFaultsOfAPlaceMultiply) {
  // 2 from 1 to 4 ms, 3 from 2 to 3 ms: 2, 6, 2, 1.
  const Schedule schedule = made(R"(
faults:
  - {kind: straggler, ranks: [5], factor: 2, at: 1 ms, lasts: 3 ms}
  - {kind: straggler, ranks: [4-5], factor: 3, at: 2 ms, lasts: 1 ms}
)");
  std::vector<std::pair<Time, double>> of_5;
  for (const Change& change : schedule.changes) {
    EXPECT_FALSE(change.link);
    if (change.place == 5) {
      of_5.emplace_back(change.at, change.value);
    }
  }
  EXPECT_THAT(of_5, ElementsAre(std::pair(1_ms, 2.0), std::pair(2_ms, 6.0), std::pair(3_ms, 2.0),
                                std::pair(4_ms, 1.0)));
  EXPECT_TRUE(schedule.losses.empty());
}

TEST(Faults, ALostNodeTakesItsRanksAndTheirLinksWithIt) {
  const Schedule schedule = made("faults: [{kind: node, nodes: [1], at: 2 s}]");
  ASSERT_EQ(schedule.changes.size(), 4U + 8U);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(schedule.changes[i].place, 4 + static_cast<std::int64_t>(i));
    EXPECT_EQ(schedule.changes[i].value, std::numeric_limits<double>::infinity());
    EXPECT_EQ(schedule.changes[4 + i].value, 0);
    EXPECT_TRUE(schedule.changes[4 + i].link);
  }
  EXPECT_THAT(schedule.losses, ElementsAre("node 1 is lost at 2 s"));
}

TEST(Faults, RandomOnesHaveTheMeanThatIsAskedFor) {
  // 16 ranks for 1,000 h with a mean of 1 h between: 16,000 gaps, whose mean is 1 h within 4
  // standard errors, 4 / sqrt(16,000) = 3.2 %.
  const std::string text =
      "{until: 3600000 s, seed: 4, faults: [{kind: straggler, ranks: [all], factor: 2, "
      "mtbf_hours: 1, lasts: 1 us}]}";
  const Schedule schedule = made(text);
  EXPECT_NEAR(static_cast<double>(schedule.changes.size()) / 2, 16'000, 0.032 * 16'000);
  const Schedule again = made(text);
  ASSERT_EQ(again.changes.size(), schedule.changes.size());
  EXPECT_EQ(again.changes.back().at, schedule.changes.back().at);
  std::string other = text;
  other.replace(other.find("seed: 4"), 7, "seed: 5");
  EXPECT_NE(made(other).changes.front().at, schedule.changes.front().at);
}

TEST(Faults, AllMistakesAreNamedWithTheirPlaces) {
  const std::string text = mistakes_of(R"(
reroute_aftr: 1 s
faults:
  - {kind: straggler, ranks: [1], factor: 0.5, at: 0}
  - {kind: link, links: [up3], bandwidth_share: 1, at: 0 s}
  - {kind: node, nodes: [0]}
  - {kind: link, links: [up3], bandwidth_share: 0, mtbf_hours: 5}
)");
  EXPECT_THAT(text, HasSubstr("faults.yaml:4"));
  EXPECT_THAT(text, HasSubstr("factor"));
  EXPECT_THAT(text, HasSubstr("bandwidth_share"));
  EXPECT_THAT(text, HasSubstr("either `at` or `mtbf_hours`"));
  EXPECT_THAT(text, HasSubstr("until"));
  EXPECT_THAT(text, HasSubstr("did you mean 'reroute_after'"));
}

TEST(Faults, WithoutAKindThereIsNothingElseToSay) {
  for (const char* fault : {"{at: 0 s}", "{kind: lnk, factr: 2, at: 0}", "5"}) {
    const std::string text = mistakes_of("faults: [" + std::string(fault) + "]");
    EXPECT_THAT(text, testing::Not(HasSubstr("factor:"))) << text;
    EXPECT_THAT(text, testing::Not(HasSubstr("ranks"))) << text;
  }
  EXPECT_EQ(mistakes_of("faults: [{at: 0 s}]"),
            "faults.yaml:1: faults[0].kind: required, but missing");
}

TEST(Faults, WhatIsNotThereIsAMistake) {
  EXPECT_THAT(mistakes_of("faults: [{kind: node, nodes: [4], at: 0 s}]"),
              HasSubstr("a number below 4"));
  EXPECT_THAT(mistakes_of("faults: [{kind: straggler, ranks: [3-16], factor: 2, at: 0 s}]"),
              HasSubstr("a range such as 0-15"));
  EXPECT_THAT(mistakes_of("faults: [{kind: link, links: [up], bandwidth_share: 0, at: 0 s}]"),
              HasSubstr("links such as up3"));
}

}  // namespace
}  // namespace orrery::faults
