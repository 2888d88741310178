// SPDX-License-Identifier: Apache-2.0
/// A model larger than memory, whose blocks pass a window of w blocks on their way from a disk
/// (TPI-LLM's sliding window).
///
/// Blocks of every token: attention 0, MLP 0, attention 1, ... A loader fetches one after the other
/// while fewer than w are there; a block is free when it has been computed, before its all-reduce:
///
///   load i     begins at max(end of load i - 1, end of computing i - w), takes load[i]
///   compute i  begins at max(end of load i, end of all-reduce i - 1), takes compute[i]
///   all-reduce i follows compute i
///
/// Unequal devices each load their own blocks; an all-reduce begins when all have computed.
///
/// With `retain` = T the MLP of every T-th layer, from layer 0 on, stays in memory beside the
/// window. A window of all blocks is loaded once.
///
/// In the steady state nothing waits if (loose) in sum over a layer computing and all-reduces take
/// as long as loading, and for every l
///   l attention + (l - 1) MLP + (2 l - 1) all-reduce >= l load MLP + (l - 1) load attention
/// or the same with attention and MLP exchanged; surely if (tight) attention + all-reduce >= load
/// of the MLP and MLP + all-reduce >= load of the attention.
///
/// Source: TPI-LLM (arXiv 2410.00531), propositions on the memory scheduler.
#pragma once

#include <cstdint>
#include <span>

#include "base/units.h"

namespace orrery::step {

struct BlockTimes {
  Time attention{0};
  Time mlp{0};
  Time all_reduce{0};
  Time load_attention{0};
  Time load_mlp{0};
};

struct WeightWindow {
  std::int64_t layers = 1;
  std::int64_t blocks = 2;  ///< w
  std::int64_t retain = 0;  ///< T; 0: no block
};

struct StreamedTokens {
  Time first{0};  ///< with an empty window at its begin
  Time next{0};   ///< mean of the others; that of the first if there are none
  Time stall{0};  ///< of all tokens: computing that waited for a load
};
/// Requires layers, blocks, tokens >= 1; times not negative. It takes one device or more: the
/// all-reduce is the first one's, and stalls are what all of them wait.
StreamedTokens stream_tokens(const WeightWindow& window, const BlockTimes& times,
                             std::int64_t tokens);
StreamedTokens stream_tokens(const WeightWindow& window, std::span<const BlockTimes> devices,
                             std::int64_t tokens);

bool loose_condition(const BlockTimes& times, std::int64_t layers);
bool tight_condition(const BlockTimes& times);

/// Elements of a share p of the heads and of the MLP's width, h hidden, s width, kv key-value over
/// query heads, m matrices of the MLP:
///   attention  2 (1 + kv) h^2 p + h      MLP  m h s p + h
struct BlockElements {
  double attention = 0;
  double mlp = 0;
  double embedding = 0;  ///< v h: input, and as much again output
  double hidden = 0;
};
/// Returns the largest number of elements in memory at once, w blocks with input and output blocks
/// at the master's two ends:
///   worker  floor(w/2) attention + floor((w+1)/2) MLP
///   master  w = 1: v h + h; w = 2: 2 v h + h; else 2 v h + h + floor((w-2)/2) attention
///           + floor((w-1)/2) MLP; no less than a worker
double peak_elements(const BlockElements& block, std::int64_t window, bool master);

}  // namespace orrery::step
