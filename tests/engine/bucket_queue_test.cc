// SPDX-License-Identifier: Apache-2.0
#include "engine/bucket_queue.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace orrery::engine {
namespace {

TEST(BucketQueue, events_of_one_instant_come_in_the_order_of_pushing) {
  BucketQueue<int> queue;
  queue.push(20_ns, 1);
  queue.push(10_ns, 2);
  queue.push(20_ns, 3);
  queue.push(10_ns, 4);
  EXPECT_EQ(queue.pop(), 2);
  EXPECT_FALSE(queue.instant_is_over());
  EXPECT_EQ(queue.pop(), 4);
  EXPECT_TRUE(queue.instant_is_over());
  EXPECT_EQ(queue.now(), 10_ns);
  EXPECT_EQ(queue.pop(), 1);
  EXPECT_EQ(queue.pop(), 3);
  EXPECT_TRUE(queue.empty());
}

TEST(BucketQueue, an_instant_takes_events_while_it_lasts) {
  BucketQueue<int> queue;
  queue.push(10_ns, 1);
  EXPECT_EQ(queue.pop(), 1);
  EXPECT_TRUE(queue.instant_is_over());
  queue.push(10_ns, 2);
  EXPECT_FALSE(queue.instant_is_over());
  EXPECT_EQ(queue.pop(), 2);
  EXPECT_EQ(queue.now(), 10_ns);
}

TEST(BucketQueue, the_end_of_time_is_a_time) {
  BucketQueue<int> queue;
  queue.push(Time::max(), 1);
  queue.push(0_ns, 2);
  EXPECT_EQ(queue.pop(), 2);
  EXPECT_EQ(queue.pop(), 1);
  EXPECT_TRUE(queue.now().is_overflow());
}

/// Compares the queue with a stable sort; many more instants than the queue remembers, pushed while
/// it is drained.
RC_GTEST_PROP(BucketQueueProperty, is_a_stable_sort_by_time, ()) {
  const auto instants = *rc::gen::inRange<std::int64_t>(1, 5000);
  BucketQueue<int> queue;
  std::vector<std::pair<std::int64_t, int>> pushed;
  std::vector<int> popped;
  const int count = *rc::gen::inRange(0, 4000);
  std::uint64_t random = 88172645463325252;
  for (int i = 0; i < count; ++i) {
    random ^= random << 13;
    random ^= random >> 7;
    random ^= random << 17;
    if (random % 4 == 0 && !queue.empty()) {
      popped.push_back(queue.pop());
    }
    const auto delay =
        static_cast<std::int64_t>((random >> 8) % static_cast<std::uint64_t>(instants));
    pushed.emplace_back(queue.now().value() + delay * 1000, i);
    queue.push(Time(pushed.back().first), i);
  }
  while (!queue.empty()) {
    popped.push_back(queue.pop());
  }
  std::stable_sort(pushed.begin(), pushed.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  for (std::size_t i = 0; i < pushed.size(); ++i) {
    RC_ASSERT(popped[i] == pushed[i].second);
  }
}

}  // namespace
}  // namespace orrery::engine
