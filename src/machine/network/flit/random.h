// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

namespace orrery::flit {

/// x(n) = x(n - 100) -+ x(n - 37) modulo a power of two; of 1,009 numbers the first 100 are used
/// (Knuth, The Art of Computer Programming, vol. 2, 3rd edition, section 3.6 with the seeding of
/// 2002). `Word`: 32 bits for whole numbers below 2^30, which subtract; 64 bits for fractions in
/// steps of 2^-52, which add. They are kept in the upper bits of words, so that those wrap as they
/// do.
template <class Word>
class KnuthSequence {
 public:
  static constexpr bool kFractions = std::is_same_v<Word, std::uint64_t>;
  static constexpr Word kModulus = Word{1} << (kFractions ? 52U : 30U);

  explicit KnuthSequence(std::uint64_t seed) : seed_(seed & ((1U << 30U) - 1)) {}

  Word next() {
    if (place_ == kUsed) {
      refill();
    }
    return block_[place_++] >> kShift;
  }

  /// Returns how many of the next `most` numbers come before the first below `limit`, which is
  /// taken too; `most` if none is.
  std::int64_t until_below(Word limit, std::int64_t most) {
    if (limit >= kModulus && most > 0) {
      next();
      return 0;
    }
    limit <<= kShift;
    std::int64_t passed = 0;
    while (passed < most) {
      if (place_ == kUsed) {
        refill();
      }
      const auto span = std::min({kUsed - place_, kLook, static_cast<std::size_t>(most - passed)});
      const Word* const x = block_.data() + place_;
      if (has_below(x, span, limit)) {
        const auto hit = std::find_if(x, x + span, [&](Word number) { return number < limit; }) - x;
        place_ += static_cast<std::size_t>(hit) + 1;
        return passed + hit;
      }
      place_ += span;
      passed += static_cast<std::int64_t>(span);
    }
    return most;
  }

 private:
  static constexpr std::size_t kLong = 100;
  static constexpr std::size_t kShort = 37;
  static constexpr std::size_t kBlock = 1009;
  static constexpr std::size_t kUsed = 100;
  static constexpr std::size_t kLook = 20;                 ///< numbers looked at together
  static constexpr unsigned kShift = kFractions ? 12 : 2;  ///< bits of a word below a number
  static constexpr int kRounds = 70;  ///< squarings: streams of different seeds lie 2^70 apart

  static Word joined(Word a, Word b) { return kFractions ? a + b : a - b; }

  /// Returns whether any is below the limit, by the sign of halves, without a branch (compilers
  /// make vectors of this and of extend()).
  static bool has_below(const Word* x, std::size_t count, Word limit) {
    Word signs = 0;
    for (std::size_t i = 0; i < count; ++i) {
      signs |= (x[i] >> 1U) - (limit >> 1U);
    }
    return (signs >> (8 * sizeof(Word) - 1)) != 0;
  }

  /// The numbers from kLong up to `count` of a block whose first kLong are there.
  static void extend(std::vector<Word>& block, std::size_t count) {
    Word* const x = block.data();
    for (std::size_t i = kLong; i < count; ++i) {
      x[i] = joined(x[i - kLong], x[i - kShort]);
    }
  }

  void refill() {
    if (block_.empty()) {
      start();
    }
    std::copy(block_.end() - kLong, block_.end(), block_.begin());
    extend(block_, block_.size());
    place_ = 0;
  }

  /// Powers of a polynomial by squaring, along the bits of the seed.
  void start() {
    std::vector<Word> x(2 * kLong);
    Word value = kFractions ? static_cast<Word>(2 * (seed_ + 2))
                            : static_cast<Word>(seed_ + 2) & (kModulus - 2);
    for (std::size_t i = 0; i < kLong; ++i) {
      x[i] = value << kShift;
      value += value;
      value -= value >= kModulus ? kModulus - 2 : 0;
    }
    x[1] += Word{1} << kShift;
    std::uint64_t bits = seed_;
    for (int round = kRounds - 1; round > 0;) {
      for (std::size_t i = kLong - 1; i > 0; --i) {
        x[2 * i] = x[i];
        x[2 * i - 1] = 0;
      }
      for (std::size_t i = 2 * kLong - 2; i >= kLong; --i) {
        x[i - (kLong - kShort)] = joined(x[i - (kLong - kShort)], x[i]);
        x[i - kLong] = joined(x[i - kLong], x[i]);
      }
      if ((bits & 1U) != 0) {
        std::copy_backward(x.begin(), x.begin() + kLong, x.begin() + kLong + 1);
        x[0] = x[kLong];
        x[kShort] = joined(x[kShort], x[kLong]);
      }
      round -= bits == 0 ? 1 : 0;
      bits >>= 1U;
    }
    block_.resize(kBlock + kLong);
    std::copy(x.begin() + kShort, x.begin() + kLong, block_.end() - kLong);
    std::copy(x.begin(), x.begin() + kShort, block_.end() - kShort);
    for (int i = 0; i < 10; ++i) {  // to warm up
      std::copy(block_.end() - kLong, block_.end(), block_.begin());
      extend(block_, 3 * kLong - 1);
      std::copy(block_.begin() + 2 * kLong - 1, block_.begin() + 3 * kLong - 1,
                block_.end() - kLong);
    }
  }

  std::uint64_t seed_;
  std::size_t place_ = kUsed;
  std::vector<Word> block_;  ///< kBlock numbers, then the kLong after them; empty before the first
};

/// Random is what BookSim 2 draws from: a seed makes the same packets here as there.
class Random {
 public:
  explicit Random(std::uint64_t seed) : whole_(seed), fractions_(seed) {}

  /// Returns one of 2^30 numbers.
  std::uint32_t next() { return whole_.next(); }
  /// One of 0 .. count-1. Requires 0 < count <= 2^30.
  std::uint32_t below(std::uint32_t count) { return whole_.next() % count; }
  /// Draws a number in [0, 1).
  double unit() { return static_cast<double>(fractions_.next()) * 0x1.0p-52; }
  /// Returns the draws of unit() before the first below `p`, `most` at most; that one is drawn too.
  std::int64_t until_below(double p, std::int64_t most) {
    return fractions_.until_below(static_cast<std::uint64_t>(std::ceil(p * 0x1.0p52)), most);
  }

 private:
  KnuthSequence<std::uint32_t> whole_;
  KnuthSequence<std::uint64_t> fractions_;
};

}  // namespace orrery::flit
