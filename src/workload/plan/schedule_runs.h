// SPDX-License-Identifier: Apache-2.0
/// Schedules that split the backward, as runs: a pattern of pieces of work that is repeated a
/// number of times. The i-th piece of a kind and chunk works on microbatch i, so a run needs no
/// list of microbatches and the length of a schedule does not grow with m.
///
///   F forward, B input gradients, W weight gradients, all of one stage's device; (F+B) one after
///   the other or beside each other.  p stages, m microbatches, s stage, h = min(s, p-1-s).
///
///   zb-h1     w = p-1-s forwards; then as 1F1B, but W of microbatch i follows B of microbatch i+s.
///             Every stage then holds at most p microbatches, as the first stage of 1F1B does.
///             bubble (p-1) max(F + B - W, F, B), exact for m >= p
///   zb-v      two chunks per device, chunk 0 down the stages and chunk 1 back up (first and last
///             part of the model on device 0). 2(p-s)-1 forwards of chunk 0, s pairs of forwards,
///             p-s times (F1 B1 W1), then F0 B0 W0 F1 B1 W1 in turn; s pairs of B, p-s times
///             (B0 W0), the rest of W.
///             bubble for F = B = W: (p-1) F/2, the time until a first microbatch has reached the
///             last device; at most p whole microbatches in flight
///   dualpipe  two copies of every stage: chunk 0 of device s is stage s, chunk 1 stage p-1-s; m/2
///             microbatches enter at either end. 2(p/2-h-1) F0, h+1 times (F0 F1), p/2-h-1 times
///             (B1 W1 F1), m/2-p+h+1 times (F0+BW1, F1+BW0), p/2-h-1 times (BW1, F1+BW0), h+1 times
///             (B1 B0) of which the second half leave their W, p/2-h-1 times (W, B0), h+1 W.
///             (0 and 1 change places on the second half of the devices.)
///             bubble (p/2-1) (F&B + B - 2W) for F = B >= W, with B without W and F&B the time of a
///             forward and a whole backward; p+1 in flight. In the paper's B, which includes W:
///             (p/2-1) (F&B + B - 3W).
///
/// The patterns of zb-v and dualpipe need m >= 2p-1 (m/2 >= p); with fewer microbatches those that
/// do not exist are left out, which keeps the order of all others.
///
/// Source: Qi et al. 2023 (Zero Bubble Pipeline Parallelism), sections 2 and 6; DeepSeek-AI 2024
/// (DeepSeek-V3 technical report), section 3.2.1, and the schedule published with it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "workload/plan/schedule.h"

namespace orrery::plan {

class RunList {
 public:
  struct Piece {
    Direction direction = Direction::forward;
    std::int64_t chunk = 0;
  };

  /// Appends `times` repetitions of the pattern; none if times <= 0.
  void add(std::int64_t times, const std::vector<Piece>& pattern);

  std::int64_t size() const { return size_; }
  PipelineSlot operator[](std::int64_t index) const;

  /// The longest run of whole microbatches: as many pieces of every kind and chunk. Who leaves
  /// some of it out on every stage then leaves out both ends of every message.
  std::optional<graph::Period> period() const;

  /// Returns the same order without microbatches from `microbatches` on.
  RunList with_fewer(std::int64_t microbatches) const;

 private:
  static constexpr std::size_t kChunks = 2;
  /// Pieces so far; a whole backward counts as both gradients.
  struct Counts {
    enum Kind : std::size_t { kForward, kInput, kWeight, kKinds };
    std::int64_t of[kKinds][kChunks] = {};

    void add(const Piece& piece);
    /// Returns the microbatch that the piece works on, among those of its kind and chunk.
    std::int64_t own(const Piece& piece) const;
    std::int64_t concurrent_backward(const Piece& piece) const;
  };
  /// One place of a pattern: microbatch = first + repetition * step.
  struct Place {
    Piece piece;
    std::int64_t first = 0;
    std::int64_t step = 0;
    std::int64_t backward_first = 0;  ///< of the backward beside
    std::int64_t backward_step = 0;
  };
  struct Run {
    std::int64_t start = 0;  ///< index of its first piece
    std::int64_t times = 0;
    std::vector<Place> places;
  };

  /// Returns the microbatches of a repetition; nothing if kinds or chunks have different numbers of
  /// them.
  std::optional<std::int64_t> step_of(const Run& run) const;

  std::vector<Run> runs_;
  std::int64_t size_ = 0;
  Counts counts_;
};

RunList zb_h1_runs(const PipelineShape& shape, std::int64_t stage);
RunList zb_v_runs(const PipelineShape& shape, std::int64_t stage);
RunList dualpipe_runs(const PipelineShape& shape, std::int64_t stage);

}  // namespace orrery::plan
