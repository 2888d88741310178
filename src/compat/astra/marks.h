// SPDX-License-Identifier: Apache-2.0
/// Marks of messages that come before their receives are posted.
#pragma once

#include <cstdint>
#include <utility>

#include "compat/astra/streams.h"

namespace orrery::astra {

/// A mark is a count, where messages come in order, or a bit by the message's number.
class Marks {
 public:
  std::uint32_t allocate(std::size_t words) { return words_.allocate(words); }
  void free(std::uint32_t first, std::size_t words) { words_.free(first, words); }

  /// Takes the mark of a message; false: there is none. `word`: the first of its stream's phase.
  [[gnu::always_inline]] bool take(std::uint32_t word, Pattern pattern, std::uint32_t message) {
    const bool counts = pattern == Pattern::chain;
    std::uint64_t& marks = words_[counts ? word : word + message / kBitsPerWord];
    const std::uint64_t mark = counts ? 1 : std::uint64_t{1} << (message % kBitsPerWord);
    const bool marked = counts ? marks > 0 : (marks & mark) != 0;
    if (marked) {
      marks -= mark;
    }
    return marked;
  }
  void leave(std::uint32_t word, Pattern pattern, std::uint32_t message) {
    if (pattern == Pattern::chain) {
      ++words_[word];
    } else {
      words_[word + message / kBitsPerWord] |= std::uint64_t{1} << (message % kBitsPerWord);
    }
  }
  /// Returns a word as it is. A tree's word has a bit for each child that has sent, and one for the
  /// parent.
  std::uint64_t& word(std::uint32_t at) { return words_[at]; }

 private:
  static constexpr std::uint32_t kBitsPerWord = 64;
  Blocks<std::uint64_t> words_;
};

}  // namespace orrery::astra
