// SPDX-License-Identifier: Apache-2.0
/// Lists of ranks as digits.
#include "graph/regular.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

namespace orrery::graph {
namespace {

using Lists = std::vector<std::vector<std::int64_t>>;

TEST(Regular, equal_values_need_no_digit) {
  EXPECT_TRUE(telling_digits({5, 5, 5, 5, 5, 5}).empty());
  EXPECT_TRUE(telling_digits({5}).empty());
}

TEST(Regular, stages_between_tensor_and_data_parallel_ranks_are_one_digit) {
  // tp 2, pp 3, dp 2: rank = tp + 2 pp + 6 dp; value = stage.
  EXPECT_EQ(telling_digits({0, 0, 1, 1, 2, 2, 0, 0, 1, 1, 2, 2}), (std::vector<Digit>{{3, 2}}));
}

TEST(Regular, two_digits_tell_where_the_one_between_does_not) {
  // value = inner (2) + 2 * outer (2), the digit of stride 2 between does not matter.
  EXPECT_EQ(telling_digits({0, 1, 0, 1, 2, 3, 2, 3}), (std::vector<Digit>{{2, 1}, {2, 4}}));
}

TEST(Regular, without_a_rule_all_ranks_are_told) {
  EXPECT_EQ(telling_digits({0, 1, 1, 0, 1, 0, 0}), (std::vector<Digit>{{7, 1}}));
}

RC_GTEST_PROP(RegularProperty, ranks_that_agree_in_the_telling_digits_have_equal_values, ()) {
  const auto values = *rc::gen::nonEmpty(
      rc::gen::container<std::vector<std::int32_t>>(rc::gen::inRange<std::int32_t>(0, 2)));
  const std::vector<Digit> digits = telling_digits(values);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::int64_t same =
        replaced(digits, 0, coordinate_of(digits, static_cast<std::int64_t>(i)));
    RC_ASSERT(values[i] == values[static_cast<std::size_t>(same)]);
  }
}

TEST(Regular, rows_and_columns_of_a_grid_are_digits) {
  const auto rows = members_by_digits({{0, 1, 2}, {3, 4, 5}}, {}, 6);
  ASSERT_TRUE(rows.has_value());
  EXPECT_EQ(rows->digits, (std::vector<Digit>{{3, 1}}));
  const auto columns = members_by_digits({{0, 3}, {1, 4}, {2, 5}}, {}, 6);
  ASSERT_TRUE(columns.has_value());
  EXPECT_EQ(columns->digits, (std::vector<Digit>{{2, 3}}));
}

TEST(Regular, a_product_of_two_digits_is_found) {
  // tp 2 and dp 2 around a stage digit of 2: {0, 1, 4, 5} and {2, 3, 6, 7}.
  const auto found = members_by_digits({{0, 1, 4, 5}, {2, 3, 6, 7}}, {}, 8);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->digits, (std::vector<Digit>{{2, 1}, {2, 4}}));
}

TEST(Regular, first_and_last_stage_are_some_values_of_the_roles_digit) {
  // 4 stages of 2 ranks; ranks of the stages between are in none.
  const auto found = members_by_digits({{0, 6}, {1, 7}}, {{4, 2}}, 8);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->only, (std::vector<std::int64_t>{0, 3}));
  EXPECT_FALSE(found->holds(2));
}

TEST(Regular, communicators_of_some_ranks_do_not_forbid_those_of_the_others) {
  EXPECT_TRUE(members_by_digits({{4, 5}}, {}, 8).has_value());
}

TEST(Regular, irregular_lists_stay_lists) {
  EXPECT_FALSE(members_by_digits({{0, 1, 3}}, {}, 6).has_value());
  EXPECT_FALSE(members_by_digits({{1, 2}, {3, 4}}, {}, 6).has_value());
  EXPECT_FALSE(members_by_digits({{0, 1}, {2, 3, 4, 5}}, {}, 6).has_value());
  EXPECT_FALSE(members_by_digits({{0, 3}}, {}, 5).has_value());
}

RC_GTEST_PROP(RegularProperty, what_digits_make_is_found_again, ()) {
  const std::int64_t inner = *rc::gen::inRange<std::int64_t>(1, 4);
  const std::int64_t size = *rc::gen::inRange<std::int64_t>(2, 5);
  const std::int64_t outer = *rc::gen::inRange<std::int64_t>(1, 4);
  Members made;
  made.digits = {{size, inner}};
  const std::int64_t ranks = inner * size * outer;
  Lists lists;
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    if (made.coordinate(rank) == 0) {
      lists.push_back(made.group(rank));
    }
  }
  const auto found = members_by_digits(lists, {}, ranks);
  RC_ASSERT(found.has_value());
  RC_ASSERT(*found == made);
}

}  // namespace
}  // namespace orrery::graph
