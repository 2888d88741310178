// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "collective/schedule.h"

namespace orrery::collective {

/// A MessageSchedule in flat arrays, for a network that sends it many times and for many
/// communicators: 20 bytes a message instead of some hundred.
class MessageList {
 public:
  /// Two ranks of the schedule of which the first sends to the second.
  struct Pair {
    std::uint32_t sender = 0;
    std::uint32_t receiver = 0;
    friend bool operator==(const Pair&, const Pair&) = default;
  };

  explicit MessageList(const MessageSchedule& schedule);
  /// Returns rings(kind, orders) (ring_orders.h) without that schedule, of five times the memory,
  /// and of its rounds, which are alike, the first two. Requires all_reduce, reduce_scatter or
  /// all_gather.
  static MessageList of_rings(graph::CollectiveKind kind,
                              const std::vector<std::vector<int>>& orders);

  std::size_t size() const { return pair_.size(); }
  /// Returns how many rounds, like the second of the two, are left out.
  std::size_t left_out() const { return left_out_; }
  /// Returns the number of messages with those left out.
  double whole_size() const {
    return static_cast<double>(size()) * (1 + static_cast<double>(left_out_) / 2);
  }
  /// Returns the list with the rounds that it leaves out.
  MessageList whole() const;
  const std::vector<Pair>& pairs() const { return pairs_; }
  /// Returns, for a message, which of pairs() it goes between, the part of the buffer that it
  /// carries, ...
  std::uint32_t pair(std::uint32_t message) const { return pair_[message]; }
  double share(std::uint32_t message) const { return blocks_[message] * block_share_; }
  /// ... those that wait for it, ...
  std::span<const std::uint32_t> unlocks(std::uint32_t message) const {
    return std::span(unlocks_).subspan(first_unlock_[message],
                                       first_unlock_[message + 1] - first_unlock_[message]);
  }
  /// ... and by message, for how many it waits.
  const std::vector<std::uint32_t>& waits() const { return waits_; }
  /// next() is the message that leaves when this one has left, where messages of a pair leave in
  /// order (MessageSchedule::lanes), or kNone. It does not count in waits().
  static constexpr std::uint32_t kNone = UINT32_MAX;
  bool in_order() const { return !next_.empty(); }
  std::uint32_t next(std::uint32_t message) const { return in_order() ? next_[message] : kNone; }

  /// Returns, by message, the one that takes its place when the pairs change places (`pair_images`,
  /// by pair): the n-th of a pair becomes the n-th of the other. The list is empty where the pairs
  /// have different numbers of messages.
  std::vector<std::uint32_t> images(std::span<const std::uint32_t> pair_images) const;
  /// Returns whether these images carry as much, and unlock each other's images.
  bool is_symmetric(std::span<const std::uint32_t> images) const;
  /// Returns only the messages that stand for themselves, waiting for what stands for what they
  /// wait for.
  MessageList folded(std::span<const std::uint32_t> stands_for) const;

  friend bool operator==(const MessageList&, const MessageList&) = default;

 private:
  MessageList() = default;
  void link(const MessageSchedule& schedule);
  void put_in_order(const MessageSchedule& schedule);
  /// Returns whether every round has all pairs in their order, once each.
  bool repeats_pairs() const;

  std::vector<Pair> pairs_;
  std::vector<std::uint32_t> pair_;
  std::vector<std::uint32_t> blocks_;
  std::vector<std::uint32_t> waits_;
  std::vector<std::uint32_t> unlocks_;
  std::vector<std::uint32_t> first_unlock_;  ///< one more at the end
  std::vector<std::uint32_t> next_;          ///< empty where there is no order
  double block_share_ = 1;
  std::size_t left_out_ = 0;  ///< rounds
};

}  // namespace orrery::collective
