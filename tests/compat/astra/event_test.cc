// SPDX-License-Identifier: Apache-2.0
#include "compat/astra/event.h"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <random>
#include <tuple>
#include <vector>

#include "compat/astra/mailboxes.h"

namespace orrery::astra {
namespace {

Event numbered(std::uint32_t number) {
  return {number, 0, 0, Event::Kind::node_done};
}
std::vector<std::uint32_t> popped(Events& events) {
  std::vector<std::uint32_t> numbers;
  while (!events.empty()) {
    numbers.push_back(events.pop().subject);
  }
  return numbers;
}

TEST(AstraEvents, WhatARankDoesAtOneInstantComesTogether) {
  Events events(3);
  events.push_own(1, 20_ns, numbered(1));
  events.push(20_ns, numbered(2));
  events.push_own(2, 20_ns, numbered(3));
  events.push_own(1, 20_ns, numbered(4));  // with the first of rank 1
  events.push(20_ns, numbered(5));
  events.push_own(1, 10_ns, numbered(6));
  EXPECT_EQ(popped(events), (std::vector<std::uint32_t>{6, 1, 4, 2, 3, 5}));
  EXPECT_EQ(events.popped(), 6U);
}

TEST(AstraEvents, WhatARankAddsForNowComesBehindItsOwn) {
  Events events(2);
  events.push_own(0, 10_ns, numbered(1));
  events.push_own(1, 10_ns, numbered(2));
  events.push_own(0, 10_ns, numbered(3));
  EXPECT_EQ(events.pop().subject, 1U);
  events.push_own(0, 10_ns, numbered(4));  // while 3 is to come
  events.push_own(1, 10_ns, numbered(5));  // of a rank that does not run
  EXPECT_FALSE(events.instant_is_over());
  EXPECT_EQ(popped(events), (std::vector<std::uint32_t>{3, 4, 2, 5}));
  EXPECT_TRUE(events.instant_is_over());
}

TEST(AstraEvents, ManyInstantsAtOnceKeepTheOrder) {
  // More instants than the queue's table remembers, so that an instant lies in several buckets.
  constexpr std::uint32_t kInstants = 5000;
  Events events(1);
  for (std::uint32_t round = 0; round < 3; ++round) {
    for (std::uint32_t i = 0; i < kInstants; ++i) {
      const Time when = Time(std::int64_t{i} * 1000);
      const Event event = numbered(3 * i + round);
      round == 1 ? events.push(when, event) : events.push_own(0, when, event);
    }
  }
  for (std::uint32_t i = 0; i < kInstants; ++i) {
    EXPECT_EQ(events.pop().subject, 3 * i);
    EXPECT_EQ(events.pop().subject, 3 * i + 2);
    EXPECT_EQ(events.pop().subject, 3 * i + 1);
  }
}

TEST(AstraMeetings, EqualAMapOfQueues) {
  using Side = Meetings::Side;
  Meetings meetings;
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::int64_t>,
           std::pair<Side, std::deque<Post>>>
      waiting;
  std::mt19937 random(1);
  const auto below = [&](std::uint32_t count) {
    return static_cast<std::uint32_t>(random()) % count;
  };
  for (std::uint32_t i = 0; i < 200'000; ++i) {
    const MessageKey key{below(20), below(20), 0, below(7), Bytes(below(3))};
    const Side side = below(2) == 0 ? Side::message : Side::receiver;
    const Post post{below(20), i};
    const auto met = meetings.meet(key, side, post);
    auto& [waits, posts] = waiting[{key.from * 20 + key.to, key.tag, key.bytes.value()}];
    if (posts.empty() || waits == side) {
      waits = side;
      posts.push_back(post);
      ASSERT_FALSE(met);
    } else {
      ASSERT_TRUE(met);
      ASSERT_EQ(met->node, posts.front().node);
      ASSERT_EQ(met->rank, posts.front().rank);
      posts.pop_front();
    }
  }
}

}  // namespace
}  // namespace orrery::astra
