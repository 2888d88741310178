// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace orrery::compute {

/// Heads that share keys and values and that a kernel of few queries computes as rows of one tile:
/// the most of `group` that divide it and fill no more than a small tile of 16 with `queries` each.
///
/// Source: FlashAttention-2 and -3 (`seqlenq_ngroups_swapped`, PackGQA), FlashInfer.
constexpr std::int64_t packed_heads(std::int64_t group, std::int64_t queries) {
  constexpr std::int64_t kMostRows = 15;  // one fewer than where prompts begin
  std::int64_t most = 1;
  for (std::int64_t heads = 2; heads <= group && heads * queries <= kMostRows; ++heads) {
    most = group % heads == 0 ? heads : most;
  }
  return most;
}

}  // namespace orrery::compute
