// SPDX-License-Identifier: Apache-2.0
#include "machine/memory/resident_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

namespace orrery::memory {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(ResidentSet, TheLeastRecentlyUsedGoesFirst) {
  ResidentSet set(3_B);
  for (const std::int64_t id : {1, 2, 3}) {
    EXPECT_EQ(set.use(id, 1_B)->copied, 1_B);
  }
  EXPECT_EQ(set.use(1, 1_B)->copied, 0_B);
  EXPECT_THAT(set.use(4, 1_B)->evicted, ElementsAre(2));
  EXPECT_THAT(set.use(5, 2_B)->evicted, ElementsAre(3, 1));
}

TEST(ResidentSet, WhatIsPinnedStaysAndWhatDoesNotFitChangesNothing) {
  ResidentSet set(3_B);
  set.use(1, 2_B);
  set.pin(1);
  EXPECT_FALSE(set.use(2, 2_B).has_value());
  EXPECT_FALSE(set.use(3, 4_B).has_value());
  EXPECT_EQ(set.used(), 2_B);
  set.unpin(1);
  EXPECT_THAT(set.use(2, 2_B)->evicted, ElementsAre(1));
}

/// The same by a plain list.
struct Listed {
  std::vector<std::int64_t> order;

  bool hit(std::int64_t id, std::size_t capacity) {
    const auto found = std::find(order.begin(), order.end(), id);
    const bool was = found != order.end();
    if (was) {
      order.erase(found);
    } else if (order.size() == capacity) {
      order.erase(order.begin());
    }
    order.push_back(id);
    return was;
  }
};

RC_GTEST_PROP(ResidentSet, CopiesAreMissesAndEqualThoseOfAList, ()) {
  const auto capacity = *rc::gen::inRange<std::size_t>(1, 6);
  const auto uses = *rc::gen::container<std::vector<std::int64_t>>(rc::gen::inRange(0, 8));
  ResidentSet set(Bytes(static_cast<std::int64_t>(capacity)));
  Listed listed;
  for (const std::int64_t id : uses) {
    RC_ASSERT((set.use(id, 1_B)->copied == 0_B) == listed.hit(id, capacity));
    RC_ASSERT(set.used() <= set.capacity());
    RC_ASSERT(set.used() == Bytes(static_cast<std::int64_t>(listed.order.size())));
  }
}

}  // namespace
}  // namespace orrery::memory
