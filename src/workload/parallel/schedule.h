// SPDX-License-Identifier: Apache-2.0
/// Pipeline schedules as pure functions: what stage s does as its i-th piece of work. Nothing is
/// stored per microbatch.
///
///   p stages, v chunks per stage, m microbatches, T = m v pieces forward and T backward per stage.
///   gpipe        T forwards, then T backwards.
///   1F1B         w = min(p-1-s, m) forwards, then (forward, backward) in turn, then the rest.
///   interleaved  the same with w = min(2(p-1-s) + (v-1)p, T) over chunks: the k-th forward is
///   chunk
///                (k mod pv) / p of microbatch p (k / pv) + k mod p; backwards take the chunks in
///                reverse order. Chunk c of stage s is the model's part c p + s. Needs m mod p = 0.
///
/// Backwards take microbatches in the order of the forwards, so microbatch m-1 of a chunk is its
/// last in both directions and messages between two stages arrive in the order in which they are
/// wanted.
///
/// Source: Huang et al. 2019 (GPipe); Narayanan et al., SC'21, section 2.2 (1F1B, interleaved).
#pragma once

#include <cstdint>
#include <vector>

#include "workload/parallel/plan.h"

namespace orrery {

struct PipelineShape {
  Schedule schedule = Schedule::one_f_one_b;
  std::int64_t stages = 1;        ///< p
  std::int64_t chunks = 1;        ///< v; 1 unless interleaved
  std::int64_t microbatches = 1;  ///< m
};
PipelineShape pipeline_shape(const Plan& plan);

enum class Direction : std::uint8_t { forward, backward };

struct PipelineSlot {
  Direction direction = Direction::forward;
  std::int64_t chunk = 0;
  std::int64_t microbatch = 0;

  friend bool operator==(const PipelineSlot&, const PipelineSlot&) = default;
};

/// Pieces of work of one stage: 2 m v.
std::int64_t slot_count(const PipelineShape& shape);
/// The index-th piece of work; 0 <= index < slot_count. O(1).
PipelineSlot slot(const PipelineShape& shape, std::int64_t stage, std::int64_t index);

/// Forwards before the first backward, less one. O(1).
std::int64_t warmup(const PipelineShape& shape, std::int64_t stage);

/// Most pieces (chunk, microbatch) whose forward has run and whose backward has not ended. O(1).
///   gpipe T;  1F1B min(p - s, m);  interleaved min(w + 1, T)
std::int64_t peak_in_flight(const PipelineShape& shape, std::int64_t stage);

/// Pieces in flight by chunk at the moment when sum over chunks of weights[c] * pieces[c] is
/// largest (the first such). The sum is piecewise linear in time with corners where a run of p
/// equal chunks ends, so only those are tried: O(v^2), O(v) for equal weights.
/// weights: one non-negative number per chunk, such as the bytes that one piece keeps.
std::vector<std::int64_t> peak_by_chunk(const PipelineShape& shape, std::int64_t stage,
                                        const std::vector<double>& weights);

}  // namespace orrery
