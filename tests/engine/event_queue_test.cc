// SPDX-License-Identifier: Apache-2.0
#include "engine/event_queue.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <vector>

namespace orrery::engine {
namespace {

TEST(EventQueue, EqualTimesComeOutInPushOrder) {
  EventQueue queue;
  for (std::uint32_t i = 0; i < 100; ++i) {
    queue.push(5_ns, 0, i);
  }
  for (std::uint32_t i = 0; i < 100; ++i) {
    EXPECT_EQ(queue.pop().subject, i);
  }
  EXPECT_TRUE(queue.empty());
}

TEST(EventQueue, NowIsTheTimeOfTheLastEvent) {
  EventQueue queue;
  queue.push(7_us, 0, 0);
  queue.push(3_us, 0, 1);
  EXPECT_EQ(queue.now(), 0_ps);
  EXPECT_EQ(queue.pop().subject, 1U);
  EXPECT_EQ(queue.now(), 3_us);
  EXPECT_EQ(queue.pop().subject, 0U);
  EXPECT_EQ(queue.now(), 7_us);
}

// The reference is std::stable_sort by time.
RC_GTEST_PROP(EventQueue, SortsStablyUnderAnyPushOrder, ()) {
  const auto times =
      *rc::gen::container<std::vector<std::uint8_t>>(rc::gen::inRange<std::uint8_t>(0, 9));
  EventQueue queue;
  std::vector<std::pair<Time, std::uint32_t>> reference;
  for (std::uint32_t i = 0; i < times.size(); ++i) {
    queue.push(Time(times[i]), 0, i);
    reference.emplace_back(Time(times[i]), i);
  }
  std::stable_sort(reference.begin(), reference.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& [when, subject] : reference) {
    const EventQueue::Event event = queue.pop();
    RC_ASSERT(event.when == when);
    RC_ASSERT(event.subject == subject);
  }
}

}  // namespace
}  // namespace orrery::engine
