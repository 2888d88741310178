// SPDX-License-Identifier: Apache-2.0
#include "graph/members.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <numeric>

namespace orrery::graph {
namespace {

using Ranks = std::vector<std::int64_t>;

Members by_digits(std::vector<Digit> digits, Ranks only = {}) {
  return {.digits = std::move(digits), .only = std::move(only), .lists = {}, .list_of = {}};
}

TEST(Members, ByDigitsAreTheRanksThatAgreeInAllOtherDigits) {
  // rank = a + 2 b + 4 c; digits a (2) and c (3): number a + 2 c. 6 = 0 + 2 * 1 + 4 * 1.
  const Members members = by_digits({{2, 1}, {3, 4}});
  EXPECT_TRUE(members.by_digits());
  EXPECT_EQ(members.size(), 6);
  EXPECT_EQ(members.group(6), (Ranks{2, 3, 6, 7, 10, 11}));
  EXPECT_EQ(members.coordinate(6), 2);
  EXPECT_EQ(members.member(6, 5), 11);
}

TEST(Members, WithoutDigitsEveryRankIsAlone) {
  const Members members;
  EXPECT_EQ(members.size(), 1);
  EXPECT_TRUE(members.holds(7));
  EXPECT_EQ(members.group(7), Ranks{7});
}

TEST(Members, OnlySomeNumbersLeaveTheOtherRanksOut) {
  // Four stages of three ranks; the first and the last.
  const Members members = by_digits({{4, 3}}, {0, 3});
  EXPECT_EQ(members.size(), 2);
  EXPECT_EQ(members.group(10), (Ranks{1, 10}));
  EXPECT_EQ(members.coordinate(10), 1);
  EXPECT_EQ(members.member(1, 1), 10);
  EXPECT_FALSE(members.holds(4));
  EXPECT_EQ(members.group(4), Ranks{});
}

TEST(Members, ListsKeepTheirOrderAndLeaveRanksOut) {
  const Members members = Members::listed({{4, 0, 2}, {1, 3}}, 6);
  EXPECT_FALSE(members.by_digits());
  EXPECT_EQ(members.size(), 3);  // of the largest
  EXPECT_EQ(members.group(2), (Ranks{4, 0, 2}));
  EXPECT_EQ(members.coordinate(2), 2);
  EXPECT_EQ(members.coordinate(4), 0);
  EXPECT_EQ(members.member(1, 1), 3);
  EXPECT_FALSE(members.holds(5));
  EXPECT_EQ(members.group(5), Ranks{});
}

/// Ranks as numbers of up to four digits, some of which are chosen; `only` some of their numbers.
struct Numbered {
  std::int64_t ranks = 1;
  Members members;
};

Numbered any_numbered() {
  Numbered numbered;
  for (int i = 0; i < 4; ++i) {
    const std::int64_t size = *rc::gen::inRange<std::int64_t>(1, 5);
    if (size > 1 && *rc::gen::arbitrary<bool>()) {
      numbered.members.digits.push_back({size, numbered.ranks});
    }
    numbered.ranks *= size;
  }
  const std::int64_t count = product_of(numbered.members.digits);
  for (std::int64_t number = 0; number < count; ++number) {
    if (*rc::gen::arbitrary<bool>()) {
      numbered.members.only.push_back(number);
    }
  }
  return numbered;
}

/// The same communicators, written down.
Members written_down(const Numbered& numbered) {
  std::vector<Ranks> lists;
  for (std::int64_t rank = 0; rank < numbered.ranks; ++rank) {
    Ranks group = numbered.members.group(rank);
    if (!group.empty() && *std::min_element(group.begin(), group.end()) == rank) {
      lists.push_back(std::move(group));
    }
  }
  return Members::listed(std::move(lists), numbered.ranks);
}

RC_GTEST_PROP(Members, EveryMemberKnowsItsNumberAndItsGroup, ()) {
  const Numbered numbered = any_numbered();
  const Members& members = numbered.members;
  const std::int64_t rank = *rc::gen::inRange<std::int64_t>(0, numbered.ranks);
  const Ranks group = members.group(rank);
  RC_ASSERT(group.empty() != members.holds(rank));
  RC_ASSERT(group.empty() || std::ssize(group) == members.size());
  for (std::size_t i = 0; i < group.size(); ++i) {
    const auto number = static_cast<std::int64_t>(i);
    RC_ASSERT(members.member(rank, number) == group[i]);
    RC_ASSERT(members.coordinate(group[i]) == number);
    RC_ASSERT(members.group(group[i]) == group);
  }
}

RC_GTEST_PROP(Members, ListsOfTheSameCommunicatorsSayTheSame, ()) {
  const Numbered numbered = any_numbered();
  const Members& members = numbered.members;
  const Members lists = written_down(numbered);
  RC_ASSERT(lists.size() == members.size());
  for (std::int64_t rank = 0; rank < numbered.ranks; ++rank) {
    RC_ASSERT(lists.holds(rank) == members.holds(rank));
    RC_ASSERT(lists.group(rank) == members.group(rank));
    if (members.holds(rank)) {
      RC_ASSERT(lists.coordinate(rank) == members.coordinate(rank));
    }
  }
}

RC_GTEST_PROP(Digits, ReplacingANumberKeepsTheOtherDigits, ()) {
  const Numbered numbered = any_numbered();
  const std::vector<Digit>& digits = numbered.members.digits;
  const std::int64_t rank = *rc::gen::inRange<std::int64_t>(0, numbered.ranks);
  const std::int64_t number = *rc::gen::inRange<std::int64_t>(0, product_of(digits));
  const std::int64_t other = replaced(digits, rank, number);
  RC_ASSERT(coordinate_of(digits, other) == number);
  RC_ASSERT(replaced(digits, other, coordinate_of(digits, rank)) == rank);
}

// ---- Refinement.

TEST(Refine, CutsAtEveryBoundaryOutsideOfTheWhole) {
  // Of 48 ranks: 2 x 2 x 3 of the parts, 4 stages of 12 outside.
  EXPECT_EQ(refine({{2, 1}, {6, 2}, {2, 2}}, {{4, 12}}, 48),
            (std::vector<Digit>{{2, 1}, {2, 2}, {3, 4}}));
  // What nobody names is a digit too.
  EXPECT_EQ(refine({{2, 4}}, {}, 24), (std::vector<Digit>{{4, 1}, {2, 4}, {3, 8}}));
}

TEST(Refine, OfBoundariesThatDoNotDivideIsNothing) {
  // 4 and 6.
  EXPECT_EQ(refine({{4, 1}, {6, 1}}, {}, 12), std::nullopt);
}

}  // namespace
}  // namespace orrery::graph
