// SPDX-License-Identifier: Apache-2.0
/// CacheBytes are what a request keeps on a device between steps.
///
///   tokens x per_token + fixed(tokens),  fixed = state + sum of windows min(tokens, w) x per_token
///
/// Layers that forget what is behind a window keep that many tokens at most; where every layer
/// does, those with the widest are counted as if they did not. A recurrent layer (Mamba-2) keeps
/// its state,
///
///   heads head_dim N elements of the state's type + (kernel - 1) (heads head_dim + 2 G N) of 16
///   bits
///
/// Ignores:  tokens of a prompt's chunk beyond the window while that chunk is computed.
/// Source:   vLLM's hybrid KV cache manager (vllm/v1/core/kv_cache_utils.py), whose groups of
/// layers
///           share one pool of pages; here in bytes, without rounding to pages of a group.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/units.h"

namespace orrery::step {

struct CacheBytes {
  struct Window {
    std::int64_t tokens = 0;
    Bytes per_token{0};
  };
  Bytes per_token{0};
  Bytes state{0};
  std::vector<Window> windows;

  Bytes fixed(std::int64_t tokens) const {
    Bytes sum = state;
    for (const Window& window : windows) {
      sum += window.per_token * std::min(tokens, window.tokens);
    }
    return sum;
  }
  /// Returns `fixed` in tokens of the others, rounded up.
  std::int64_t fixed_tokens(std::int64_t tokens) const {
    const Bytes sum = fixed(tokens);
    return per_token > Bytes(0) ? (sum.value() + per_token.value() - 1) / per_token.value() : 0;
  }
};

}  // namespace orrery::step
