// SPDX-License-Identifier: Apache-2.0
#include "compat/astra/event.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

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

TEST(AstraEvents, ARepeatedEventComesAsOftenAsItWasPushed) {
  Events events(2);
  for (int i = 0; i < 300; ++i) {  // more than one event counts
    events.push_own(0, 10_ns, numbered(1));
    events.push_own(1, 10_ns, numbered(2));
  }
  events.push_own(0, 10_ns, numbered(3));
  events.push_own(0, 10_ns, numbered(1));
  std::vector<std::uint32_t> expected(300, 1);
  expected.insert(expected.end(), {3, 1});
  expected.insert(expected.end(), 300, 2);
  EXPECT_EQ(popped(events), expected);
  EXPECT_EQ(events.popped(), 602U);
}

/// Few events at few instants, so that repetitions are common, equal all of them in rows: those of
/// a rank go to its first of the instant.
RC_GTEST_PROP(AstraEventsProperty, equal_rows_by_instant_and_rank, ()) {
  constexpr std::uint32_t kRanks = 3;
  Events events(kRanks);
  std::map<int, std::vector<std::pair<std::uint32_t, std::uint32_t>>> rows;  // rank, number
  const auto pushes =
      *rc::gen::container<std::vector<std::tuple<int, std::uint32_t, std::uint32_t>>>(
          rc::gen::tuple(rc::gen::inRange(1, 4), rc::gen::inRange(0U, kRanks + 1),
                         rc::gen::inRange(0U, 2U)));
  for (const auto& [when, rank, number] : pushes) {
    rows[when].emplace_back(rank, number);
    rank < kRanks ? events.push_own(rank, Time(when), numbered(number))
                  : events.push(Time(when), numbered(number));
  }
  std::vector<std::uint32_t> expected;
  for (const auto& [when, row] : rows) {
    std::vector<bool> taken(kRanks);
    for (const auto& [rank, number] : row) {
      if (rank == kRanks) {
        expected.push_back(number);
      } else if (!taken[rank]) {
        taken[rank] = true;
        for (const auto& [other, its] : row) {
          if (other == rank) {
            expected.push_back(its);
          }
        }
      }
    }
  }
  RC_ASSERT(popped(events) == expected);
  RC_ASSERT(events.popped() == pushes.size());
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
