// SPDX-License-Identifier: Apache-2.0
/// Blocks of small integers in place of floats: what a quantised collective carries, and the
/// kernels that make and read it.
///
///   s    = max |x_i| / Q over a block, rounded up to a float of 16 significant bits;
///          Q = 2^(b-1) - 1
///   q_i  = the integer nearest to x_i / s, so |q_i| <= Q
///   x'_i = q_i s
///
/// Error:    |x_i - x'_i| <= s / 2, exactly. q_i s has at most 24 significant bits, so the product
///           is a float and is not rounded; x_i - q_i s is exact in double, and q_i moves by one
///           where it is above s / 2. A sum over d ranks is off by at most the sum of their s / 2;
///           one that is quantised again for a second hop by half a step of its own scale more.
/// Again:    a block of x' quantises to itself as long as its maximum does, so a second pass over
///           the same blocks loses nothing more.
/// Bytes:    ceil(b n / 8) + 4 ceil(n / block), for n elements of b bits.
/// Requires: b of 8 or 4, block >= 1, finite values, |x| of 0 or from 2^-100 on.
/// Source:   Dettmers et al. 2022 (arXiv:2110.02861), section 2.1; Wang et al. 2023 (ZeRO++,
///           arXiv:2306.10209), sections 3.1 and 3.3.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/units.h"

namespace orrery::collective {

/// Returns the size of `elements` in integers of `bits`, with their scales.
Bytes quantized_bytes(std::int64_t elements, int bits, std::int64_t block);

struct QuantizedBlocks {
  int bits = 8;
  std::int64_t block = 1;
  std::vector<std::int8_t> values;  ///< one element each, of 4 bits too
  std::vector<float> scales;        ///< by block; 0: all its elements are
};

QuantizedBlocks quantize(std::span<const float> values, int bits, std::int64_t block);
std::vector<float> dequantize(const QuantizedBlocks& blocks);

/// Sums over ranks in the two hops of a quantised reduction: rank r sends each of the `near` ranks
/// of its node that rank's part, quantised; every rank adds up what it gets, quantises the sum and
/// sends it to the ranks with its place in the other nodes. `by_rank` has the same number of values
/// each, a multiple of the ranks, which are a multiple of `near`.
struct TwoHopSum {
  std::vector<std::vector<float>> shards;  ///< by rank: its part of the sum
  std::vector<std::vector<float>> bounds;  ///< of the error of each element
};
TwoHopSum two_hop_sum(const std::vector<std::vector<float>>& by_rank, std::size_t near, int bits,
                      std::int64_t block);

}  // namespace orrery::collective
