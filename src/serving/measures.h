// SPDX-License-Identifier: Apache-2.0
/// Measuring of an engine's steps. Internal to this folder.
#pragma once

#include <cstdint>

#include "serving/serve.h"

namespace orrery::serving {

/// Listens to an engine and fills its run: gaps between tokens, tokens by second, samples once a
/// second, steps for traces, and the share of blocks in use,
///
///   kv_use_s = sum over time of blocks in use x seconds / blocks
///
/// which is summed in blocks x picoseconds, so that skipped and scheduled steps give the same.
class Measures {
 public:
  /// Listens to an engine with so many blocks in all; tokens are counted from `first` on.
  Measures(Run& run, Time first, std::int64_t blocks, std::size_t most_steps)
      : run_(run), first_(first), blocks_(blocks), most_steps_(most_steps) {}

  /// Requests and blocks of an engine.
  struct State {
    std::int64_t running = 0;
    std::int64_t waiting = 0;
    std::int64_t blocks = 0;
  };

  /// A step of this begin and end in which the engine is in this state.
  void on_step(const StepRecord& step, const State& state);
  /// Notes that so many passes have generated tokens that arrive at `end`; those of the first
  /// eleven days count.
  void on_tokens(Time end, std::int64_t passes);
  /// Notes that so many of these tokens came `gap` after the one before of their requests.
  void on_gaps(Time gap, std::int64_t passes);
  /// Notes that so many blocks are in use from `at` on.
  void on_blocks(Time at, std::int64_t blocks);
  /// The run is over.
  void finish();

  /// Returns the time of the next sample, which is taken in the first step that ends then or later.
  Time next_sample() const { return next_sample_; }

 private:
  /// Exact.
  using BlockTime = __int128;

  Run& run_;
  Time first_;
  std::int64_t blocks_;
  std::size_t most_steps_;
  Time next_sample_{0};
  BlockTime held_time_ = 0;
  std::int64_t held_ = 0;
  Time held_since_{0};
};

}  // namespace orrery::serving
