// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace orrery::flit {

/// Calls visit(i) for every bit i of a word, in ascending order.
template <class Visit>
void for_each_bit(std::uint64_t bits, Visit visit) {
  for (; bits != 0; bits &= bits - 1) {
    visit(static_cast<std::uint32_t>(std::countr_zero(bits)));
  }
}

/// A set of small numbers, walked in ascending order.
class BitSet {
 public:
  void resize(std::size_t size) { words_.assign((size + 63) / 64, 0); }
  bool any() const { return count_ > 0; }
  bool has(std::uint32_t i) const { return ((words_[i / 64] >> (i % 64)) & 1U) != 0; }
  void add(std::uint32_t i) {
    const std::uint64_t bit = std::uint64_t{1} << (i % 64);
    count_ += (words_[i / 64] & bit) == 0 ? 1 : 0;
    words_[i / 64] |= bit;
  }
  void remove(std::uint32_t i) {
    const std::uint64_t bit = std::uint64_t{1} << (i % 64);
    count_ -= (words_[i / 64] & bit) != 0 ? 1 : 0;
    words_[i / 64] &= ~bit;
  }
  /// Calls visit(i) for what is in the set when its word is come to; it may change the set.
  template <class Visit>
  void for_each(Visit visit) const {
    std::size_t left = count_;
    for (std::size_t word = 0; word < words_.size() && left > 0; ++word) {
      for_each_bit(words_[word], [&](std::uint32_t bit) {
        --left;
        visit(static_cast<std::uint32_t>(word * 64) + bit);
      });
    }
  }

 private:
  std::vector<std::uint64_t> words_;
  std::size_t count_ = 0;
};

}  // namespace orrery::flit
