// SPDX-License-Identifier: Apache-2.0
#include "base/grouped.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace orrery {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Grouped, HoldsTheValuesOfEachKeyInTheirOrder) {
  Grouped lists(3, [](const auto& add) {
    add(2, 7U);
    add(0, 5U);
    add(2, 6U);
  });
  EXPECT_EQ(lists.size(), 3U);
  EXPECT_THAT(lists[0], ElementsAre(5));
  EXPECT_THAT(lists[1], IsEmpty());
  EXPECT_THAT(lists[2], ElementsAre(7, 6));
  EXPECT_EQ(lists.begin_of(2), 1U);
  EXPECT_THAT(std::move(lists).take_values(), ElementsAre(5, 7, 6));
}

TEST(Grouped, OfNoKeysIsEmpty) {
  EXPECT_EQ(Grouped(0, [](const auto&) {}).size(), 0U);
}

}  // namespace
}  // namespace orrery
