// SPDX-License-Identifier: Apache-2.0
/// Messages between two ranks: sends meet receives.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/units.h"

namespace orrery::astra {

/// One side of a message between two ranks: a node of a rank.
struct Post {
  std::uint32_t rank = 0;
  std::uint32_t node = 0;
};

/// Messages of one source, destination, tag and size match in order. Source and destination are
/// simulated ranks; `offset` is the distance of the real ones.
struct MessageKey {
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  std::int32_t offset = 0;
  std::uint32_t tag = 0;
  Bytes bytes{0};
  friend bool operator==(const MessageKey&, const MessageKey&) = default;
};

/// Posts that wait for their counterparts of the same key, first come first served: of a key only
/// one side waits at a time. A key takes memory while it has posts that wait.
///
/// Open addressing with linear probing, 40 bytes a key, the longest waiting post beside its key: a
/// map from keys to queues took 37 % of a run of random messages.
class Meetings {
 public:
  enum class Side : std::uint8_t { message, receiver };

  /// Returns the counterpart of `post` that waits longest; without one, `post` waits.
  std::optional<Post> meet(const MessageKey& key, Side side, const Post& post) {
    if (2 * (count_ + 1) > slots_.size()) {
      grow();
    }
    Slot& slot = slots_[place_of(key)];
    if (slot.empty()) {
      slot = {key, post, kNone, kNone, side};
      ++count_;
      return std::nullopt;
    }
    if (slot.side == side) {
      wait_behind(slot, post);
      return std::nullopt;
    }
    const Post met = slot.first;
    if (slot.second == kNone) {
      remove(slot);
    } else {
      const std::uint32_t next = slot.second;
      slot.first = behind_[next].post;
      slot.second = behind_[next].next;
      unused_.push_back(next);
    }
    return met;
  }

 private:
  static constexpr std::uint32_t kNone = 0xffffffff;
  struct Slot {
    MessageKey key;
    Post first{kNone, kNone};
    std::uint32_t second = kNone;  ///< the next that waits, in behind_
    std::uint32_t last = kNone;
    Side side = Side::message;
    bool empty() const { return first.rank == kNone; }
  };
  struct Behind {
    Post post;
    std::uint32_t next = kNone;
  };

  static std::uint64_t hash(const MessageKey& key) {
    constexpr std::uint64_t kFactor = 0x9e3779b97f4a7c15;
    std::uint64_t value = (std::uint64_t{key.from} << 32 | key.to) * kFactor;
    value = (value ^ (value >> 32) ^ (std::uint64_t{key.tag} << 32) ^
             static_cast<std::uint64_t>(key.bytes.value())) *
            kFactor;
    value = (value ^ (value >> 29) ^ static_cast<std::uint32_t>(key.offset)) * kFactor;
    return value ^ (value >> 32);
  }
  std::size_t home_of(const MessageKey& key) const { return hash(key) & (slots_.size() - 1); }
  /// Returns the place where the key is, or where it would be put.
  std::size_t place_of(const MessageKey& key) const {
    std::size_t place = home_of(key);
    while (!slots_[place].empty() && slots_[place].key != key) {
      place = (place + 1) & (slots_.size() - 1);
    }
    return place;
  }
  void wait_behind(Slot& slot, const Post& post) {
    if (unused_.empty()) {
      unused_.push_back(static_cast<std::uint32_t>(behind_.size()));
      behind_.emplace_back();
    }
    const std::uint32_t added = unused_.back();
    unused_.pop_back();
    behind_[added] = {post, kNone};
    (slot.second == kNone ? slot.second : behind_[slot.last].next) = added;
    slot.last = added;
  }
  /// Removes the slot; those that probed past it move up.
  void remove(Slot& slot) {
    const std::size_t mask = slots_.size() - 1;
    auto hole = static_cast<std::size_t>(&slot - slots_.data());
    for (std::size_t at = (hole + 1) & mask; !slots_[at].empty(); at = (at + 1) & mask) {
      if (((at - home_of(slots_[at].key)) & mask) >= ((at - hole) & mask)) {
        slots_[hole] = slots_[at];
        hole = at;
      }
    }
    slots_[hole].first.rank = kNone;
    --count_;
  }
  void grow() {
    constexpr std::size_t kLeast = 64;
    std::vector<Slot> old(slots_.empty() ? kLeast : 2 * slots_.size());
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (!slot.empty()) {
        slots_[place_of(slot.key)] = slot;
      }
    }
  }

  std::vector<Slot> slots_;  ///< a power of two of them, or none
  std::size_t count_ = 0;
  std::vector<Behind> behind_;
  std::vector<std::uint32_t> unused_;
};

/// Values that an event names by number until it comes.
template <class Value>
class Kept {
 public:
  std::uint32_t put(const Value& value) {
    if (unused_.empty()) {
      values_.push_back(value);
      return static_cast<std::uint32_t>(values_.size() - 1);
    }
    const std::uint32_t index = unused_.back();
    unused_.pop_back();
    values_[index] = value;
    return index;
  }
  Value take(std::uint32_t index) {
    unused_.push_back(index);
    return values_[index];
  }

 private:
  std::vector<Value> values_;
  std::vector<std::uint32_t> unused_;
};

/// Messages and ready messages in flight.
class Mail {
 public:
  struct Letter {
    Post sender;
    std::uint32_t receiver = 0;  ///< simulated rank
    bool ends_sender = true;     ///< of several equal letters the first does
  };
  std::uint32_t put(const Letter& letter) { return letters_.put(letter); }
  Letter take(std::uint32_t index) { return letters_.take(index); }

  Meetings arrived;  ///< messages that are there and receives
  Meetings ready;    ///< rendezvous: sends and ready messages of receives (as receivers)

 private:
  Kept<Letter> letters_;
};

}  // namespace orrery::astra
