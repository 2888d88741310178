// SPDX-License-Identifier: Apache-2.0
#include "collective/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "collective/steps.h"

namespace orrery::collective {
namespace {

using ::testing::ElementsAre;
using Kind = graph::CollectiveKind;
using Algorithm = CollectiveAlgorithm;

/// Holds which ranks' contributions each rank has of each block, as bits.
using Holdings = std::vector<std::vector<std::uint64_t>>;

std::uint64_t bit(int rank) {
  return std::uint64_t{1} << rank;
}

/// Returns what a rank holds of a block before the collective.
std::uint64_t at_start(const MessageSchedule& schedule, int rank, int block) {
  switch (schedule.kind) {
    case Kind::all_reduce:
    case Kind::reduce_scatter:
      return bit(rank);
    case Kind::all_gather:
      return schedule.owner(block) == rank ? bit(rank) : 0;
    case Kind::all_to_all:
      return block / schedule.ranks == rank ? bit(rank) : 0;
    case Kind::broadcast:
      return rank == 0 ? bit(0) : 0;
    case Kind::send_recv:
      return block == rank ? bit(rank) : 0;
  }
  return 0;
}

/// Returns what a rank must hold after it, or 0 when that does not matter.
std::uint64_t at_end(const MessageSchedule& schedule, int rank, int block) {
  const std::uint64_t everyone = bit(schedule.ranks) - 1;
  switch (schedule.kind) {
    case Kind::all_reduce:
      return everyone;
    case Kind::reduce_scatter:
      return schedule.owner(block) == rank ? everyone : 0;
    case Kind::all_gather:
      return bit(schedule.owner(block));
    case Kind::all_to_all:
      return block % schedule.ranks == rank ? bit(block / schedule.ranks) : 0;
    case Kind::broadcast:
      return bit(0);
    case Kind::send_recv:
      return block == (rank + schedule.ranks - 1) % schedule.ranks ? bit(block) : 0;
  }
  return 0;
}

/// Runs the messages in any order that `after` allows, also with any number in flight: each reads
/// its blocks when it leaves and changes the receiver when it arrives. Every schedule that is right
/// for all orders is right for all latencies and bandwidths.
class AnyOrder {
 public:
  explicit AnyOrder(const MessageSchedule& schedule)
      : schedule_(schedule),
        missing_(schedule.messages.size()),
        unlocks_(schedule.messages.size()),
        carried_(schedule.messages.size()) {
    for (int rank = 0; rank < schedule.ranks; ++rank) {
      held_.emplace_back();
      for (int block = 0; block < schedule.blocks; ++block) {
        held_.back().push_back(at_start(schedule, rank, block));
      }
    }
    for (std::size_t m = 0; m < missing_.size(); ++m) {
      missing_[m] = schedule.messages[m].after.size();
      for (const int before : schedule.messages[m].after) {
        unlocks_[static_cast<std::size_t>(before)].push_back(m);
      }
      if (missing_[m] == 0) {
        waiting_.push_back(m);
      }
    }
  }

  /// `choose(n)` picks one of n possible next happenings.
  template <class Choose>
  Holdings run(const Choose& choose) {
    while (!waiting_.empty() || !flying_.empty()) {
      const std::size_t pick = choose(waiting_.size() + flying_.size());
      if (pick < waiting_.size()) {
        depart(pick);
      } else {
        arrive(pick - waiting_.size());
      }
    }
    return held_;
  }

 private:
  static std::size_t take(std::vector<std::size_t>& from, std::size_t index) {
    const std::size_t taken = from[index];
    from[index] = from.back();
    from.pop_back();
    return taken;
  }
  void depart(std::size_t index) {
    const std::size_t m = take(waiting_, index);
    const Message& message = schedule_.messages[m];
    for (const int block : message.blocks) {
      const auto held = held_[static_cast<std::size_t>(message.sender)];
      carried_[m].push_back(held[static_cast<std::size_t>(block)]);
      RC_ASSERT(carried_[m].back() != 0U);  // never sends what it does not have
    }
    flying_.push_back(m);
  }
  void arrive(std::size_t index) {
    const std::size_t m = take(flying_, index);
    const Message& message = schedule_.messages[m];
    auto& held = held_[static_cast<std::size_t>(message.receiver)];
    for (std::size_t i = 0; i < message.blocks.size(); ++i) {
      std::uint64_t& mine = held[static_cast<std::size_t>(message.blocks[i])];
      if (message.reduce) {
        RC_ASSERT((mine & carried_[m][i]) == 0U);  // nobody's contribution is added twice
        mine |= carried_[m][i];
      } else {
        mine = carried_[m][i];
      }
    }
    for (const std::size_t next : unlocks_[m]) {
      if (--missing_[next] == 0) {
        waiting_.push_back(next);
      }
    }
  }

  const MessageSchedule& schedule_;
  Holdings held_;
  std::vector<std::size_t> missing_;
  std::vector<std::vector<std::size_t>> unlocks_;
  std::vector<std::vector<std::uint64_t>> carried_;
  std::vector<std::size_t> waiting_;
  std::vector<std::size_t> flying_;
};

/// Every pair of kind and algorithm that has a schedule for some number of ranks.
std::vector<std::pair<Kind, Algorithm>> pairs() {
  std::vector<std::pair<Kind, Algorithm>> pairs;
  for (const auto& kind : kNames<Kind>) {
    for (const auto& algorithm : kNames<Algorithm>) {
      if (schedule_of(kind.value, algorithm.value, 4)) {
        pairs.emplace_back(kind.value, algorithm.value);
      }
    }
  }
  return pairs;
}

/// No messages when there is no such schedule.
MessageSchedule scheduled_messages_of(Kind kind, Algorithm algorithm, int ranks, int chunks = 1) {
  return schedule_of(kind, algorithm, ranks, chunks).value_or(MessageSchedule{});
}

void check_result(const MessageSchedule& schedule, const Holdings& held) {
  for (int rank = 0; rank < schedule.ranks; ++rank) {
    for (int block = 0; block < schedule.blocks; ++block) {
      const std::uint64_t expected = at_end(schedule, rank, block);
      const auto& row = held[static_cast<std::size_t>(rank)];
      RC_ASSERT(expected == 0U || row[static_cast<std::size_t>(block)] == expected);
    }
  }
}

TEST(Schedule, SeventeenPairsOfKindAndAlgorithmExist) {
  // ring: all but all_to_all, send_recv; direct: all six; halving_doubling: three; tree:
  // all_reduce, broadcast; pairwise: all_to_all; two_shot: all_reduce.
  EXPECT_EQ(pairs().size(), 4U + 6U + 3U + 2U + 1U + 1U);
}

RC_GTEST_PROP(ScheduleProperty, EveryRankEndsWithWhatTheCollectivePromises, ()) {
  const auto [kind, algorithm] = *rc::gen::elementOf(pairs());
  const int ranks = *rc::gen::inRange(2, 34);
  const int chunks = *rc::gen::inRange(1, 5);
  const MessageSchedule schedule = scheduled_messages_of(kind, algorithm, ranks, chunks);
  RC_PRE(!schedule.messages.empty());
  const auto seed = *rc::gen::arbitrary<std::uint32_t>();
  std::uint64_t state = seed;
  const auto choose = [&state](std::size_t n) {  // Knuth's linear congruential generator
    state = state * 6364136223846793005U + 1442695040888963407U;
    return static_cast<std::size_t>(state >> 33U) % n;
  };
  check_result(schedule, AnyOrder(schedule).run(choose));
  // Also with as few and as many messages in flight as possible.
  check_result(schedule, AnyOrder(schedule).run([](std::size_t n) { return n - 1; }));
  check_result(schedule, AnyOrder(schedule).run([](std::size_t) { return std::size_t{0}; }));
}

RC_GTEST_PROP(ScheduleProperty, MessagesWaitForEarlierStepsAtTheirEnds, ()) {
  const auto [kind, algorithm] = *rc::gen::elementOf(pairs());
  const MessageSchedule schedule = scheduled_messages_of(kind, algorithm, *rc::gen::inRange(2, 34));
  RC_PRE(!schedule.messages.empty());
  for (std::size_t m = 0; m < schedule.messages.size(); ++m) {
    const Message& message = schedule.messages[m];
    RC_ASSERT(message.sender != message.receiver);
    for (const int before : message.after) {
      RC_ASSERT(static_cast<std::size_t>(before) < m);
      const Message& earlier = schedule.messages[static_cast<std::size_t>(before)];
      RC_ASSERT(earlier.receiver == message.sender || earlier.receiver == message.receiver);
      RC_ASSERT(earlier.step < message.step);
    }
  }
}

RC_GTEST_PROP(ScheduleProperty, StepsAreThoseOfTheClosedForm, ()) {
  const auto [kind, algorithm] = *rc::gen::elementOf(pairs());
  const int ranks = *rc::gen::inRange(2, 34);
  const MessageSchedule schedule = scheduled_messages_of(kind, algorithm, ranks);
  const auto count = count_steps(kind, algorithm, ranks, Fabric{});
  RC_ASSERT(!schedule.messages.empty() == count.has_value());
  RC_PRE(!schedule.messages.empty());
  int steps = 0;
  for (const Message& message : schedule.messages) {
    steps = std::max(steps, message.step + 1);
  }
  RC_ASSERT(static_cast<double>(steps) == count.value_or(StepCount{}).steps);
}

TEST(Tree, InOrderTreeOfEight) {
  // 0 - 4 - {2, 6}, 2 - {1, 3}, 6 - {5, 7}.
  EXPECT_THAT(in_order_tree(8), ElementsAre(-1, 2, 4, 2, 0, 6, 4, 6));
  EXPECT_THAT(second_tree(8), ElementsAre(1, 3, 1, 7, 5, 3, 5, -1));
}

std::vector<int> children_of(const std::vector<int>& tree) {
  std::vector<int> children(tree.size());
  for (const int parent : tree) {
    if (parent >= 0) {
      ++children[static_cast<std::size_t>(parent)];
    }
  }
  return children;
}

TEST(Tree, NobodyHasMoreThanTwoChildrenInBothTreesTogether) {
  // A leaf of one tree is inner in the other; roots have one child and may have one more there.
  for (int count = 2; count <= 64; ++count) {
    const std::vector<int> first = children_of(in_order_tree(count));
    const std::vector<int> second = children_of(second_tree(count));
    for (std::size_t node = 0; node < first.size(); ++node) {
      EXPECT_LE(first[node] + second[node], 2) << count << " nodes";
    }
  }
}

}  // namespace
}  // namespace orrery::collective
