// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "machine/network/flit/settings.h"

namespace orrery::flit {

inline constexpr Interval kLongAgo = -(Interval{1} << 40U);

/// Returns the time of the next flit. A port that passed a flit at `now` passes the next at the
/// first cycle not before this. A port that was not idle keeps fractions, so that the mean is
/// right.
inline Interval next_time(Interval before, Cycle now, Interval interval) {
  return std::max(before, ((now - 1) << kIntervalBits) + 1) + interval;
}

inline Cycle cycle_of(Interval time) {
  return (time + kEveryCycle - 1) >> kIntervalBits;
}

/// A Calendar knows the present cycle and holds what is to happen, by cycle: a wheel of lists, one
/// turn of which covers the longest delay. Lists keep their memory.
class Calendar {
 public:
  /// A flit that reaches an input VC.
  struct Flit {
    std::uint32_t where = 0;
    std::uint32_t packet = 0;
  };
  struct Slot {
    std::vector<Flit> flits;
    std::vector<std::uint32_t> flits_to_nodes;  ///< packets
    std::vector<std::uint32_t> credits;         ///< output VCs
    std::vector<std::uint32_t> routed;          ///< input VCs whose head's routing ends now
    std::vector<std::uint32_t> rested;          ///< input VCs that may send from now on
    std::vector<std::uint32_t> opened;          ///< output ports that may pass a flit from now on
    std::vector<std::uint32_t> sources;         ///< that may send a flit from now on
  };

  /// Sets the reach. `longest`: no delay of an event is longer.
  void set_reach(Cycle longest) {
    slots_.resize(std::bit_ceil(static_cast<std::size_t>(longest) + 2));
    used_.assign((slots_.size() + 63) / 64, 0);
  }
  /// Covers longer delays from now on, with what is pending.
  void grow(Cycle longest) {
    Calendar wider;
    wider.now_ = now_;
    wider.set_reach(longest);
    for (std::size_t ahead = 0; ahead < slots_.size() && count_ > 0; ++ahead) {
      const Cycle when = now_ + static_cast<Cycle>(ahead);
      if ((used_[place_of(when) / 64] & bit_of(when)) != 0) {
        wider.at(when) = std::move(slots_[place_of(when)]);
      }
    }
    *this = std::move(wider);
  }
  Cycle reach() const { return static_cast<Cycle>(slots_.size()) - 1; }

  Cycle now() const { return now_; }
  /// Requires that nothing is to happen from now() to before `when`.
  void move_to(Cycle when) { now_ = when; }

  /// Returns the slot for something to be added at `when`, now() <= when <= now() + reach().
  Slot& at(Cycle when) {
    std::uint64_t& word = used_[place_of(when) / 64];
    count_ += (word & bit_of(when)) == 0 ? 1 : 0;
    word |= bit_of(when);
    return slots_[place_of(when)];
  }
  /// Returns the cycle of a time, or an earlier one in which to look again.
  Slot& towards(Interval time) { return at(std::min(cycle_of(time), now_ + reach())); }
  Slot& present() { return slots_[place_of(now_)]; }
  /// Empties the slot of the present cycle.
  void done() {
    for (auto* list : {&present().flits_to_nodes, &present().credits, &present().routed,
                       &present().rested, &present().opened, &present().sources}) {
      list->clear();
    }
    present().flits.clear();
    std::uint64_t& word = used_[place_of(now_) / 64];
    count_ -= (word & bit_of(now_)) != 0 ? 1 : 0;
    word &= ~bit_of(now_);
  }
  bool empty() const { return count_ == 0; }

  /// Calls visit(slot) for all, in no order.
  template <class Visit>
  void for_each(Visit visit) const {
    for (const Slot& slot : slots_) {
      visit(slot);
    }
  }

  /// Returns the first cycle from now() on with something in it. Requires !empty().
  Cycle next() const {
    std::size_t place = place_of(now_);
    std::size_t ahead = 0;
    while (true) {
      const std::uint64_t bits = used_[place / 64] >> (place % 64);
      if (bits != 0) {
        return now_ + static_cast<Cycle>(ahead) + std::countr_zero(bits);
      }
      const std::size_t step = std::min<std::size_t>(64 - place % 64, slots_.size() - place);
      ahead += step;
      place = (place + step) & (slots_.size() - 1);
    }
  }

 private:
  std::size_t place_of(Cycle when) const {
    return static_cast<std::size_t>(when) & (slots_.size() - 1);
  }
  std::uint64_t bit_of(Cycle when) const { return std::uint64_t{1} << (place_of(when) % 64); }

  std::vector<Slot> slots_;
  std::vector<std::uint64_t> used_;
  std::size_t count_ = 0;
  Cycle now_ = 0;
};

}  // namespace orrery::flit
