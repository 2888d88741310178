// SPDX-License-Identifier: Apache-2.0
/// Messages between two ranks: sends meet receives.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "base/units.h"

namespace orrery::astra {

/// One side of a message between two ranks: a node of a rank.
struct Post {
  std::uint32_t rank = 0;
  std::uint32_t node = 0;
};

/// A queue of things that meet one by one, first come first served: at any time only one side
/// waits.
template <class Left, class Right>
class Meeting {
 public:
  /// The Right that waits longest; without one, `left` waits.
  std::optional<Right> left(const Left& left) { return meet(left, lefts_, rights_, taken_right_); }
  std::optional<Left> right(const Right& right) {
    return meet(right, rights_, lefts_, taken_left_);
  }

 private:
  template <class Mine, class Other>
  static std::optional<Other> meet(const Mine& mine, std::vector<Mine>& mines,
                                   std::vector<Other>& others, std::size_t& taken) {
    if (taken < others.size()) {
      const Other met = others[taken++];
      if (taken == others.size()) {
        others.clear();
        taken = 0;
      }
      return met;
    }
    mines.push_back(mine);
    return std::nullopt;
  }
  std::vector<Left> lefts_;
  std::vector<Right> rights_;
  std::size_t taken_left_ = 0;
  std::size_t taken_right_ = 0;
};

/// Messages of one source, destination, tag and size match in order. Source and destination are
/// simulated ranks; `offset` is the distance of the real ones.
struct MessageKey {
  std::int64_t from = 0;
  std::int64_t to = 0;
  std::int64_t offset = 0;
  std::uint32_t tag = 0;
  std::int64_t bytes = 0;
  friend auto operator<=>(const MessageKey&, const MessageKey&) = default;
};

struct Mailbox {
  Meeting<Post, Post> arrived;  ///< messages that are there (left), receives (right)
  Meeting<Post, Post> ready;    ///< rendezvous: sends (left), ready messages of receives (right)
};

/// Posts under way, and the mailboxes by key.
struct Mail {
  struct InFlight {
    Post sender;
    Mailbox* box = nullptr;
    bool ends_sender = true;  ///< of several equal letters the first does
  };
  Mailbox& box(const MessageKey& key) { return boxes[key]; }
  std::uint32_t put(const InFlight& letter) {
    if (unused.empty()) {
      letters.push_back(letter);
      return static_cast<std::uint32_t>(letters.size() - 1);
    }
    const std::uint32_t index = unused.back();
    unused.pop_back();
    letters[index] = letter;
    return index;
  }
  InFlight take(std::uint32_t index) {
    unused.push_back(index);
    return letters[index];
  }
  std::map<MessageKey, Mailbox> boxes;
  std::vector<InFlight> letters;
  std::vector<std::uint32_t> unused;
};

}  // namespace orrery::astra
