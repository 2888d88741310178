// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

namespace orrery::flit {

/// xoshiro256** (Blackman & Vigna 2018), seeded by SplitMix64: the same numbers everywhere.
class Random {
 public:
  explicit Random(std::uint64_t seed) {
    for (std::uint64_t& word : state_) {
      seed += 0x9e3779b97f4a7c15ULL;
      std::uint64_t mixed = (seed ^ (seed >> 30U)) * 0xbf58476d1ce4e5b9ULL;
      mixed = (mixed ^ (mixed >> 27U)) * 0x94d049bb133111ebULL;
      word = mixed ^ (mixed >> 31U);
    }
  }

  std::uint64_t next() {
    const std::uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
    const std::uint64_t shifted = state_[1] << 17U;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= shifted;
    state_[3] = std::rotl(state_[3], 45);
    return result;
  }

  /// One of 0 .. count-1 (Lemire's multiplication; the bias is below count / 2^32). Requires count
  /// > 0.
  std::uint32_t below(std::uint32_t count) {
    return static_cast<std::uint32_t>(((next() >> 32U) * count) >> 32U);
  }
  /// In [0, 1).
  double unit() { return static_cast<double>(next() >> 11U) * 0x1.0p-53; }

  /// Trials up to and with the first success of Bernoulli draws of probability p, 0 < p <= 1.
  std::int64_t trials(double p) {
    if (p >= 1) {
      return 1;
    }
    const double draws = std::floor(std::log1p(-unit()) / std::log1p(-p));
    return 1 + static_cast<std::int64_t>(std::fmin(draws, 9e15));
  }

 private:
  std::array<std::uint64_t, 4> state_{};
};

}  // namespace orrery::flit
