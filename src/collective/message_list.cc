// SPDX-License-Identifier: Apache-2.0
#include "collective/message_list.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

namespace orrery::collective {
namespace {

/// Numbers pairs in the order in which they come.
class PairNumbers {
 public:
  explicit PairNumbers(std::size_t ranks) : last_(ranks) {}

  /// Returns the pair's number, and whether it is new.
  std::pair<std::uint32_t, bool> of(int sender, int receiver) {
    Last& last = last_[static_cast<std::size_t>(sender)];
    if (last.receiver == receiver) {
      return {last.number, false};
    }
    const std::uint64_t both =
        static_cast<std::uint64_t>(sender) * last_.size() + static_cast<std::uint64_t>(receiver);
    const auto [found, fresh] =
        known_.try_emplace(both * kScatter, static_cast<std::uint32_t>(known_.size()));
    last = {receiver, found->second};
    return {found->second, fresh};
  }

 private:
  /// Odd: one number for each pair still. Without it a ring's pairs, n + 1 apart, share one bucket
  /// where that is the table's size, as it is for 256 ranks.
  static constexpr std::uint64_t kScatter = 0x9e3779b97f4a7c15;
  /// A rank mostly sends to whom it has just sent.
  struct Last {
    int receiver = -1;
    std::uint32_t number = 0;
  };
  std::vector<Last> last_;  ///< by sender
  std::unordered_map<std::uint64_t, std::uint32_t> known_;
};

}  // namespace

MessageList::MessageList(const MessageSchedule& schedule) : block_share_(schedule.block_share) {
  PairNumbers numbers(static_cast<std::size_t>(schedule.ranks));
  pair_.reserve(schedule.messages.size());
  blocks_.reserve(schedule.messages.size());
  waits_.reserve(schedule.messages.size());
  for (const Message& message : schedule.messages) {
    const auto [number, fresh] = numbers.of(message.sender, message.receiver);
    if (fresh) {
      pairs_.push_back({static_cast<std::uint32_t>(message.sender),
                        static_cast<std::uint32_t>(message.receiver)});
    }
    pair_.push_back(number);
    blocks_.push_back(static_cast<std::uint32_t>(message.blocks.size()));
    waits_.push_back(static_cast<std::uint32_t>(message.after.size()));
  }
  link(schedule);
  if (schedule.lanes > 0) {
    put_in_order(schedule);
  }
}

void MessageList::put_in_order(const MessageSchedule& schedule) {
  next_.assign(size(), kNone);
  const auto lanes = static_cast<std::size_t>(schedule.lanes);
  const std::size_t in_lane = static_cast<std::size_t>(schedule.blocks) / lanes;
  std::vector<std::uint32_t> last(pairs_.size() * lanes * 2, kNone);  // sums, copies
  for (std::uint32_t m = 0; m < size(); ++m) {
    const Message& message = schedule.messages[m];
    const std::size_t lane = static_cast<std::size_t>(message.blocks.front()) / in_lane;
    std::uint32_t& before = last[(pair_[m] * lanes + lane) * 2 + (message.reduce ? 1 : 0)];
    if (before != kNone) {
      next_[before] = m;
    }
    before = m;
  }
}

/// Step after step, in each the members of the rings in turn, ring by ring; a message waits for the
/// one before it on its ring, of the step before.
MessageList MessageList::of_rings(graph::CollectiveKind kind,
                                  const std::vector<std::vector<int>>& orders) {
  const std::size_t ranks = orders.front().size();
  const std::size_t rings = orders.size();
  const std::size_t in_step = ranks * rings;
  const std::size_t steps = (kind == graph::CollectiveKind::all_reduce ? 2 : 1) * (ranks - 1);
  MessageList list;
  list.block_share_ = 1.0 / static_cast<double>(ranks) / static_cast<double>(rings);
  PairNumbers numbers(ranks);
  for (std::size_t place = 0; place < ranks; ++place) {
    for (const std::vector<int>& order : orders) {
      const int sender = order[place];
      const int receiver = order[(place + 1) % ranks];
      const auto [number, fresh] = numbers.of(sender, receiver);
      if (fresh) {
        list.pairs_.push_back(
            {static_cast<std::uint32_t>(sender), static_cast<std::uint32_t>(receiver)});
      }
      list.pair_.push_back(number);
    }
  }
  list.blocks_.assign(in_step, 1);
  list.waits_.assign(in_step, 0);
  list.first_unlock_.assign(in_step + 1, 0);
  if (steps == 1) {
    return list;
  }
  list.pair_.insert(list.pair_.end(), list.pair_.begin(), list.pair_.end());
  list.blocks_.resize(2 * in_step, 1);
  list.waits_.resize(2 * in_step, 1);
  for (std::size_t i = 0; i < in_step; ++i) {
    const bool last = i >= in_step - rings;
    list.unlocks_.push_back(static_cast<std::uint32_t>(i + rings + (last ? 0 : in_step)));
    list.first_unlock_[i] = static_cast<std::uint32_t>(i);
  }
  list.first_unlock_.resize(2 * in_step + 1);
  std::fill(list.first_unlock_.begin() + static_cast<std::ptrdiff_t>(in_step),
            list.first_unlock_.end(), static_cast<std::uint32_t>(in_step));
  list.left_out_ = steps - 2;
  return list;
}

/// A message of a further round is like that of the round before; those of the last unlock nothing.
MessageList MessageList::whole() const {
  MessageList all = *this;
  if (left_out_ == 0) {
    return all;
  }
  all.left_out_ = 0;
  const std::size_t in_round = size() / 2;
  const std::size_t messages = (left_out_ + 2) * in_round;
  const std::size_t unlocked = unlocks_.size();  // by a round
  const auto repeat = [](std::vector<std::uint32_t>& list, std::size_t period, std::size_t until,
                         std::size_t further) {
    list.reserve(until);
    for (std::size_t i = list.size(); i < until; ++i) {
      list.push_back(list[i - period] + static_cast<std::uint32_t>(further));
    }
  };
  repeat(all.pair_, in_round, messages, 0);
  repeat(all.blocks_, in_round, messages, 0);
  repeat(all.waits_, in_round, messages, 0);
  repeat(all.unlocks_, unlocked, (left_out_ + 1) * unlocked, in_round);
  all.first_unlock_.resize(in_round);
  repeat(all.first_unlock_, in_round, messages + 1, unlocked);
  for (std::uint32_t& first : all.first_unlock_) {
    first = std::min(first, static_cast<std::uint32_t>(all.unlocks_.size()));
  }
  return all;
}

/// Turns `after` round.
void MessageList::link(const MessageSchedule& schedule) {
  first_unlock_.assign(size() + 1, 0);
  for (const Message& message : schedule.messages) {
    for (const int before : message.after) {
      ++first_unlock_[static_cast<std::size_t>(before) + 1];
    }
  }
  for (std::size_t m = 0; m < size(); ++m) {
    first_unlock_[m + 1] += first_unlock_[m];
  }
  unlocks_.resize(first_unlock_.back());
  std::vector<std::uint32_t> next(first_unlock_.begin(), first_unlock_.end() - 1);
  for (std::uint32_t m = 0; m < size(); ++m) {
    for (const int before : schedule.messages[m].after) {
      unlocks_[next[static_cast<std::size_t>(before)]++] = m;
    }
  }
}

bool MessageList::repeats_pairs() const {
  const std::size_t period = pairs_.size();
  for (std::size_t m = 0; m < size(); ++m) {
    if (pair_[m] != (m < period ? m : pair_[m - period])) {
      return false;
    }
  }
  return size() % std::max<std::size_t>(1, period) == 0;
}

std::vector<std::uint32_t> MessageList::images(std::span<const std::uint32_t> pair_images) const {
  if (repeats_pairs()) {  // the n-th of every pair is in round n
    std::vector<std::uint32_t> images;
    images.reserve(size());
    for (std::size_t round = 0; round < size(); round += pairs_.size()) {
      for (const std::uint32_t image : pair_images) {
        images.push_back(static_cast<std::uint32_t>(round) + image);
      }
    }
    return images;
  }
  std::vector<std::uint32_t> first(pairs_.size() + 1);
  for (const std::uint32_t pair : pair_) {
    ++first[pair + 1];
  }
  for (std::size_t p = 0; p < pairs_.size(); ++p) {
    if (first[p + 1] != first[pair_images[p] + 1]) {
      return {};
    }
  }
  for (std::size_t p = 0; p < pairs_.size(); ++p) {
    first[p + 1] += first[p];
  }
  std::vector<std::uint32_t> by_pair(size());
  std::vector<std::uint32_t> next(first.begin(), first.end() - 1);
  for (std::uint32_t m = 0; m < size(); ++m) {
    by_pair[next[pair_[m]]++] = m;
  }
  std::vector<std::uint32_t> images(size());
  for (std::size_t p = 0; p < pairs_.size(); ++p) {
    for (std::uint32_t i = first[p]; i < first[p + 1]; ++i) {
      images[by_pair[i]] = by_pair[first[pair_images[p]] + i - first[p]];
    }
  }
  return images;
}

bool MessageList::is_symmetric(std::span<const std::uint32_t> images) const {
  std::vector<std::uint32_t> expected;
  std::vector<std::uint32_t> found;
  for (std::uint32_t m = 0; m < size(); ++m) {
    const std::uint32_t image = images[m];
    const auto theirs = unlocks(image);
    const auto own = unlocks(m);
    if (blocks_[m] != blocks_[image] || waits_[m] != waits_[image] || own.size() != theirs.size()) {
      return false;
    }
    const bool ends = next(m) == kNone || next(image) == kNone;
    if (ends ? next(m) != next(image) : images[next(m)] != next(image)) {
      return false;
    }
    if (own.size() == 1) {  // of most lists every one
      if (images[own.front()] != theirs.front()) {
        return false;
      }
      continue;
    }
    expected.clear();
    for (const std::uint32_t next : own) {
      expected.push_back(images[next]);
    }
    found.assign(theirs.begin(), theirs.end());
    std::ranges::sort(expected);
    std::ranges::sort(found);
    if (expected != found) {
      return false;
    }
  }
  return true;
}

MessageList MessageList::folded(std::span<const std::uint32_t> stands_for) const {
  std::vector<std::uint32_t> number(size(), kNone);
  std::vector<std::uint32_t> number_of_pair(pairs_.size(), kNone);
  MessageList kept;
  kept.block_share_ = block_share_;
  kept.left_out_ = left_out_;
  for (std::uint32_t m = 0; m < size(); ++m) {
    if (stands_for[m] == m) {
      number[m] = static_cast<std::uint32_t>(kept.size());
      std::uint32_t& pair = number_of_pair[pair_[m]];
      if (pair == kNone) {
        pair = static_cast<std::uint32_t>(kept.pairs_.size());
        kept.pairs_.push_back(pairs_[pair_[m]]);
      }
      kept.pair_.push_back(pair);
      kept.blocks_.push_back(blocks_[m]);
      kept.waits_.push_back(waits_[m]);
    }
  }
  std::vector<std::pair<std::uint32_t, std::uint32_t>> edges;
  for (std::uint32_t m = 0; m < size(); ++m) {
    for (const std::uint32_t next : unlocks(m)) {
      if (number[next] != kNone) {
        edges.emplace_back(number[stands_for[m]], number[next]);
      }
    }
  }
  if (!std::ranges::is_sorted(edges)) {
    std::ranges::sort(edges);
  }
  kept.first_unlock_.assign(kept.size() + 1, 0);
  for (const auto& [before, after] : edges) {
    ++kept.first_unlock_[before + 1];
    kept.unlocks_.push_back(after);
  }
  for (std::size_t m = 0; m < kept.size(); ++m) {
    kept.first_unlock_[m + 1] += kept.first_unlock_[m];
  }
  for (std::uint32_t m = 0; in_order() && m < size(); ++m) {
    if (stands_for[m] == m) {
      kept.next_.push_back(next_[m] == kNone ? kNone : number[stands_for[next_[m]]]);
    }
  }
  return kept;
}

}  // namespace orrery::collective
