// SPDX-License-Identifier: Apache-2.0
#include "collective/message_list.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "collective/ring_orders.h"

namespace orrery::collective {
namespace {

std::vector<int> upwards(int members) {
  std::vector<int> order(static_cast<std::size_t>(members));
  std::iota(order.begin(), order.end(), 0);
  return order;
}

TEST(MessageList, RingsWithoutTheirScheduleAreThoseOfTheSchedule) {
  using graph::CollectiveKind;
  for (const auto kind :
       {CollectiveKind::all_reduce, CollectiveKind::reduce_scatter, CollectiveKind::all_gather}) {
    for (const int members : {2, 3, 4, 7, 16}) {
      const std::vector<int> up = upwards(members);
      const std::vector<std::vector<std::vector<int>>> all{
          {up}, {up, {up.rbegin(), up.rend()}}, complete_cycles(members)};
      for (const auto& orders : all) {
        EXPECT_TRUE(MessageList::of_rings(kind, orders).whole() ==
                    MessageList(rings(kind, orders, 1)))
            << name_of(kind) << " of " << members << " on " << orders.size() << " rings";
      }
    }
  }
}

TEST(MessageList, RingOfThreeByHand) {
  // An all-gather: two steps of 0 -> 1, 1 -> 2, 2 -> 0, each a third; what 0 sends to 1 first, 1
  // passes on to 2.
  const MessageList list = MessageList::of_rings(graph::CollectiveKind::all_gather, {{0, 1, 2}});
  ASSERT_EQ(list.size(), 6U);
  EXPECT_EQ(list.pairs().size(), 3U);
  EXPECT_EQ(list.pair(3), 0U);
  EXPECT_DOUBLE_EQ(list.share(0), 1.0 / 3);
  ASSERT_EQ(list.unlocks(0).size(), 1U);
  EXPECT_EQ(list.unlocks(0)[0], 4U);
  EXPECT_EQ(list.unlocks(2)[0], 3U);
  EXPECT_TRUE(list.unlocks(4).empty());
  EXPECT_EQ(list.waits(), (std::vector<std::uint32_t>{0, 0, 0, 1, 1, 1}));
}

/// An all-reduce of 5 on two rings: 8 rounds of 10 messages, of which 6 are left out. Turned by
/// one, a message in 5 stays: 8 rounds of 2, each of which waits for its own of the round before.
TEST(MessageList, TwoRoundsOfARingStandForAll) {
  const std::vector<int> up = upwards(5);
  const MessageList two =
      MessageList::of_rings(graph::CollectiveKind::all_reduce, {up, {up.rbegin(), up.rend()}});
  EXPECT_EQ(two.size(), 20U);
  EXPECT_EQ(two.left_out(), 6U);
  EXPECT_DOUBLE_EQ(two.whole_size(), 80);
  const auto first_of_its_kind = [](const MessageList& list) {
    std::vector<std::uint32_t> images;
    for (const MessageList::Pair& pair : list.pairs()) {
      const bool upward = (pair.sender + 1) % 5 == pair.receiver;
      const MessageList::Pair image{0, upward ? 1U : 4U};
      images.push_back(static_cast<std::uint32_t>(std::ranges::find(list.pairs(), image) -
                                                  list.pairs().begin()));
    }
    return list.images(images);
  };
  const MessageList folded = two.folded(first_of_its_kind(two)).whole();
  const MessageList whole = two.whole();
  EXPECT_TRUE(folded == whole.folded(first_of_its_kind(whole)));
  ASSERT_EQ(folded.size(), 16U);
  for (std::uint32_t message = 0; message < 14; ++message) {
    ASSERT_EQ(folded.unlocks(message).size(), 1U);
    EXPECT_EQ(folded.unlocks(message)[0], message + 2);
  }
}

TEST(MessageList, ChunksOfAPairLeaveInOrder) {
  // Three chunks along three ranks: messages 0, 2, 4 from rank 0, 1, 3, 5 from rank 1.
  const MessageList list(
      *schedule_of(graph::CollectiveKind::broadcast, CollectiveAlgorithm::ring, 3, 3));
  ASSERT_EQ(list.size(), 6U);
  EXPECT_TRUE(list.in_order());
  for (std::uint32_t message = 0; message < 4; ++message) {
    EXPECT_EQ(list.next(message), message + 2);
  }
  EXPECT_EQ(list.next(4), MessageList::kNone);
  EXPECT_EQ(list.next(5), MessageList::kNone);
  EXPECT_EQ(list.waits(), (std::vector<std::uint32_t>{0, 1, 0, 1, 0, 1}));  // without the order
  const MessageList ring(
      *schedule_of(graph::CollectiveKind::all_reduce, CollectiveAlgorithm::ring, 3));
  EXPECT_FALSE(ring.in_order());
  EXPECT_EQ(ring.next(0), MessageList::kNone);
}

TEST(MessageList, ARingTurnsOntoItself) {
  // Of three, by one: message n of 0 -> 1 becomes message n of 1 -> 2, and so on. Turned in its
  // second step only, what waits would wait for another's message.
  const MessageList ring = MessageList::of_rings(graph::CollectiveKind::all_gather, {{0, 1, 2}});
  const std::vector<std::uint32_t> images = ring.images(std::vector<std::uint32_t>{1, 2, 0});
  EXPECT_EQ(images, (std::vector<std::uint32_t>{1, 2, 0, 4, 5, 3}));
  EXPECT_TRUE(ring.is_symmetric(images));
  EXPECT_FALSE(ring.is_symmetric(std::vector<std::uint32_t>{0, 1, 2, 4, 5, 3}));
  // A list whose pairs do not come round after round: 0 -> 1 twice, then 1 -> 0 twice.
  MessageSchedule schedule;
  schedule.ranks = 2;
  schedule.block_share = 0.5;
  for (const auto& [from, to] : {std::pair(0, 1), {0, 1}, {1, 0}, {1, 0}}) {
    schedule.messages.push_back({.sender = from, .receiver = to, .blocks = {0}, .after = {}});
  }
  const MessageList twice(schedule);
  const std::vector<std::uint32_t> changed = twice.images(std::vector<std::uint32_t>{1, 0});
  EXPECT_EQ(changed, (std::vector<std::uint32_t>{2, 3, 0, 1}));
  EXPECT_TRUE(twice.is_symmetric(changed));
}

}  // namespace
}  // namespace orrery::collective
