// SPDX-License-Identifier: Apache-2.0
/// A request as an engine's scheduler sees it: counts of tokens, no time.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

namespace orrery::scheduler {

using RequestIndex = std::int32_t;
using BlockIndex = std::int32_t;

/// Spreads numbers that are near each other (splitmix64, Steele et al. 2014).
constexpr std::uint64_t mixed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31U);
}

/// A SharedPrefix is what is the same in several requests, from the first token on. Tokens [i
/// id_tokens, (i + 1) id_tokens) of two requests are equal, with all before them, if their ids[i]
/// are.
struct SharedPrefix {
  std::vector<std::uint64_t> ids;
  std::int64_t id_tokens = 1;
  std::int64_t tokens = 0;  ///< that the ids say; none beyond them is shared
};

struct RequestSpec {
  std::int64_t prompt = 1;
  std::int64_t output = 1;  ///< tokens that it will generate
  SharedPrefix prefix;
  bool keeps_blocks = false;  ///< at its end, until Scheduler::let_go()
  /// Blocks beside those of its tokens, from its admission on: recurrent states, and keys and
  /// values of layers that forget what is behind a window.
  std::int64_t fixed_blocks = 0;
  std::int32_t adapter = -1;  ///< low-rank adapter that it needs; -1: none
};

struct RequestState {
  RequestSpec spec;
  std::int64_t known = 0;         ///< prompt and generated tokens that the engine has seen
  std::int64_t computed = 0;      ///< with those of ticks in flight
  std::int64_t placeholders = 0;  ///< tokens that ticks in flight will generate
  std::int64_t in_flight = 0;     ///< ticks
  std::vector<BlockIndex> blocks;
  std::vector<BlockIndex> fixed;   ///< spec.fixed_blocks, or none
  std::vector<BlockIndex> former;  ///< held before a preemption: its content may be there still
  std::int64_t former_tokens = 0;  ///< computed then
  std::int64_t cached = 0;         ///< tokens found in the prefix cache, of all admissions
  std::int64_t lost = 0;           ///< computed tokens dropped by preemptions
  std::int64_t fetching = 0;       ///< tokens that it will have when a lower tier has sent them
  int preemptions = 0;
  bool running = false;
  bool finished = false;

  std::int64_t emitted() const { return known - spec.prompt; }
  /// Returns the tokens that are generated, or on the way.
  std::int64_t promised() const { return emitted() + placeholders; }
};

}  // namespace orrery::scheduler
