// SPDX-License-Identifier: Apache-2.0
/// Pipeline schedules as pure functions: what stage s does as its i-th piece of work. Nothing is
/// stored per microbatch.
///
///   p stages, v chunks per stage, m microbatches, T = m v pieces forward and T backward per stage.
///   (dualpipe: v = 2 copies of stages, and each chunk sees m/2 of the microbatches.)
///   gpipe        T forwards, then T backwards.
///   1F1B         w = min(p-1-s, m) forwards, then (forward, backward) in turn, then the rest.
///   interleaved  the same with w = min(2(p-1-s) + (v-1)p, T) over chunks: the k-th forward is
///                chunk (k mod pv) / p of microbatch p (k / pv) + k mod p; backwards take the
///                chunks in reverse order. Chunk c of stage s is the model's part c p + s. Needs m
///                mod p = 0.
///
///   in pairs     (overlap_ep: microbatch) 1F1B and interleaved with w = min(2(p-1-s) + (v-1)p + 1,
///                T), then T - w pairs of the next forward and the next backward at once, then the
///                rest: neither waits for the other, and messages have a pair's time to arrive.
///
///   zb-h1, zb-v, dualpipe: schedule_runs.h. They cut a backward into the input gradients B, which
///                the stage before waits for, and the weight gradients W, which nobody waits for.
///
/// Backwards take microbatches in the order of the forwards, so microbatch m-1 of a chunk is its
/// last in both directions and messages between two stages arrive in the order in which they are
/// wanted.
///
/// Source: Huang et al. 2019 (GPipe); Narayanan et al., SC'21, section 2.2 (1F1B, interleaved);
///         Megatron-Core's combined_1f1b (in pairs: one forward more before the first backward; it
///         asks for interleaving where p > 1, whose warm-up 1F1B has here).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "graph/source.h"
#include "workload/plan/plan.h"

namespace orrery::plan {

struct PipelineShape {
  Schedule schedule = Schedule::one_f_one_b;
  std::int64_t stages = 1;        ///< p
  std::int64_t chunks = 1;        ///< v; 2 for zb-v and dualpipe; else 1 unless interleaved
  std::int64_t microbatches = 1;  ///< m that pass through one chunk: of dualpipe half of the step's
  /// 1F1B and interleaved may run in pairs: after the warm-up a forward and a backward are one
  /// piece of work.
  bool pairs = false;

  std::int64_t pieces() const { return microbatches * chunks; }  ///< T
};
PipelineShape pipeline_shape(const Plan& plan);
std::int64_t chunks_of(const Plan& plan);

/// Returns the number of parts into which the model is cut: p v, but p for dualpipe, which holds
/// every part twice.
std::int64_t part_count(const PipelineShape& shape);
/// Returns the part that a chunk of a stage is:
///   interleaved c p + s;   zb-v s or 2p-1-s;   dualpipe s or p-1-s;   else s
std::int64_t part_of(const PipelineShape& shape, std::int64_t stage, std::int64_t chunk);
/// Returns whether the chunk hands its activations to the previous stage instead of the next.
bool flows_back(const PipelineShape& shape, std::int64_t chunk);
/// Returns whether chunk 0 of the stage hands its activations to chunk 1 of the same stage.
bool turns(const PipelineShape& shape, std::int64_t stage);
/// Returns whether the first and the last part of the model stand on one device, so that a tied
/// embedding needs no copy.
bool ends_meet(const Plan& plan);
/// Returns whether weight gradients are pieces of work of their own, at times or always.
bool splits_backward(Schedule schedule);
/// Returns whether a forward of one chunk and a backward of another may be one piece of work.
bool has_pairs(const PipelineShape& shape);

enum class Direction : std::uint8_t {
  forward,
  backward,          ///< input and weight gradients
  input_gradient,    ///< B
  weight_gradient,   ///< W
  forward_backward,  ///< a forward of `chunk` and a backward of `backward_chunk` beside it
};

struct PipelineSlot {
  Direction direction = Direction::forward;
  std::int64_t chunk = 0;
  std::int64_t microbatch = 0;
  std::int64_t backward_microbatch = 0;  ///< of forward_backward
  std::int64_t backward_chunk = 0;       ///< of forward_backward; of dualpipe the other chunk

  friend bool operator==(const PipelineSlot&, const PipelineSlot&) = default;
};

/// Pieces of work of one stage of a schedule with a warm-up (not listed as runs): 2 m v; in pairs
/// m v + w.
std::int64_t slot_count(const PipelineShape& shape, std::int64_t stage);
/// The index-th piece of work of these; 0 <= index < slot_count. O(1).
PipelineSlot slot(const PipelineShape& shape, std::int64_t stage, std::int64_t index);

/// Forwards before the first backward, less the one that precedes or accompanies it, of these; 0 of
/// others. O(1).
std::int64_t warmup(const PipelineShape& shape, std::int64_t stage);

class RunList;
/// A StageSchedule says what one stage does in order, for any schedule. O(log runs) per piece of
/// work.
class StageSchedule {
 public:
  StageSchedule(const PipelineShape& shape, std::int64_t stage);
  std::int64_t size() const { return size_; }
  PipelineSlot operator[](std::int64_t index) const;  ///< 0 <= index < size
  /// Returns the longest part in which the same pieces come back for later microbatches: of gpipe
  /// the forwards, else whole microbatches: the pairs after the warm-up, or the longest such run.
  std::optional<graph::Period> period() const;

 private:
  PipelineShape shape_;
  std::int64_t warmup_;
  std::shared_ptr<const RunList> runs_;  ///< of schedules that are listed so
  std::int64_t size_;
};

}  // namespace orrery::plan
