// SPDX-License-Identifier: Apache-2.0
#include "engine/calendar_queue.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

namespace orrery::engine {
namespace {

TEST(CalendarQueue, slots_come_in_order_and_ties_in_the_order_of_pushing) {
  CalendarQueue queue(1_ns);
  queue.push(20_ns, 0, 1);
  queue.push(10_ns, 0, 2);
  queue.push(20_ns, 0, 3);
  queue.push(10'400_ps, 0, 4);
  queue.push(1'000'000_us, 0, 5);  // far beyond the slots
  EXPECT_EQ(queue.pop().subject, 2U);
  EXPECT_EQ(queue.pop().subject, 4U);
  EXPECT_EQ(queue.now(), 10'400_ps);
  queue.push(10'400_ps, 0, 6);  // of the slot at hand
  EXPECT_EQ(queue.pop().subject, 6U);
  EXPECT_EQ(queue.pop().subject, 1U);
  EXPECT_EQ(queue.pop().subject, 3U);
  EXPECT_EQ(queue.pop().subject, 5U);
  EXPECT_TRUE(queue.empty());
}

RC_GTEST_PROP(CalendarQueue, ItIsAnEventQueue, ()) {
  CalendarQueue calendar(Time(*rc::gen::inRange(1, 2000)));
  EventQueue queue;
  std::uint32_t pushed = 0;
  const int steps = *rc::gen::inRange(1, 400);
  for (int step = 0; step < steps; ++step) {
    const int events = *rc::gen::inRange(0, 6);
    for (int e = 0; e < events; ++e) {
      // At the instant, within a few slots, and far ahead.
      const std::int64_t ahead =
          *rc::gen::element<std::int64_t>(0, 1, 700, 40'000, 3'000'000, 5'000'000'000) *
          *rc::gen::inRange(0, 4);
      calendar.push(calendar.now() + Time(ahead), 7, pushed, 2 * pushed);
      queue.push(queue.now() + Time(ahead), 7, pushed, 2 * pushed);
      ++pushed;
    }
    const int pops = *rc::gen::inRange(0, 6);
    for (int p = 0; p < pops && !queue.empty(); ++p) {
      RC_ASSERT(!calendar.empty());
      const auto a = calendar.pop();
      const auto b = queue.pop();
      RC_ASSERT(a.when == b.when);
      RC_ASSERT(a.subject == b.subject);
      RC_ASSERT(a.generation == b.generation);
      RC_ASSERT(calendar.now() == queue.now());
    }
  }
  while (!queue.empty()) {
    RC_ASSERT(calendar.pop().subject == queue.pop().subject);
  }
  RC_ASSERT(calendar.empty());
}

}  // namespace
}  // namespace orrery::engine
