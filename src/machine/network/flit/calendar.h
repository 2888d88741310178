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

/// A Calendar holds what is to happen, by cycle: a wheel of lists, one turn of which covers the
/// longest delay. Lists keep their memory.
class Calendar {
 public:
  /// A flit that reaches an input VC or, in `flit_to_node`, an output port.
  struct Flit {
    std::uint32_t where = 0;
    std::uint32_t packet = 0;
  };
  struct Slot {
    std::vector<Flit> flits;
    std::vector<Flit> flits_to_nodes;
    std::vector<std::uint32_t> credits;  ///< output VCs
    std::vector<std::uint32_t> heads;    ///< input VCs that ask for an output VC from now on
    std::vector<std::uint32_t> rested;   ///< input VCs that may send from now on
    std::vector<std::uint32_t> opened;   ///< output ports that may pass a flit from now on
    std::vector<std::uint32_t> sources;  ///< that may send a flit from now on
  };

  /// `longest`: no delay of an event is longer.
  void set_reach(Cycle longest) {
    slots_.resize(std::bit_ceil(static_cast<std::size_t>(longest) + 2));
    used_.assign((slots_.size() + 63) / 64, 0);
  }
  /// Covers longer delays from now on, with what is pending.
  void grow(Cycle longest, Cycle now) {
    Calendar wider;
    wider.set_reach(longest);
    for (std::size_t ahead = 0; ahead < slots_.size() && count_ > 0; ++ahead) {
      const std::size_t place = (static_cast<std::size_t>(now) + ahead) & (slots_.size() - 1);
      if (((used_[place / 64] >> (place % 64)) & 1U) != 0) {
        wider.at(now + static_cast<Cycle>(ahead)) = std::move(slots_[place]);
      }
    }
    *this = std::move(wider);
  }
  Cycle reach() const { return static_cast<Cycle>(slots_.size()) - 1; }

  /// For something to be added at `when`, now <= when <= now + reach().
  Slot& at(Cycle when) {
    const std::size_t place = static_cast<std::size_t>(when) & (slots_.size() - 1);
    std::uint64_t& word = used_[place / 64];
    const std::uint64_t bit = std::uint64_t{1} << (place % 64);
    count_ += (word & bit) == 0 ? 1 : 0;
    word |= bit;
    return slots_[place];
  }
  /// The slot of the present cycle, to be emptied by the caller, then done().
  Slot& present(Cycle now) { return slots_[static_cast<std::size_t>(now) & (slots_.size() - 1)]; }
  void done(Cycle now) {
    const std::size_t place = static_cast<std::size_t>(now) & (slots_.size() - 1);
    std::uint64_t& word = used_[place / 64];
    const std::uint64_t bit = std::uint64_t{1} << (place % 64);
    count_ -= (word & bit) != 0 ? 1 : 0;
    word &= ~bit;
  }
  bool empty() const { return count_ == 0; }

  /// visit(slot) for all, in no order.
  template <class Visit>
  void for_each(Visit visit) const {
    for (const Slot& slot : slots_) {
      visit(slot);
    }
  }

  /// The first cycle after `now` with something in it. Requires !empty().
  Cycle next_after(Cycle now) const {
    const std::size_t mask = slots_.size() - 1;
    std::size_t place = static_cast<std::size_t>(now + 1) & mask;
    std::size_t ahead = 1;
    while (true) {
      const std::uint64_t bits = used_[place / 64] >> (place % 64);
      if (bits != 0) {
        return now + static_cast<Cycle>(ahead) + std::countr_zero(bits);
      }
      const std::size_t step = std::min<std::size_t>(64 - place % 64, slots_.size() - place);
      ahead += step;
      place = (place + step) & mask;
    }
  }

 private:
  std::vector<Slot> slots_;
  std::vector<std::uint64_t> used_;
  std::size_t count_ = 0;
};

}  // namespace orrery::flit
