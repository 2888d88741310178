// SPDX-License-Identifier: Apache-2.0
/// Memory of a stage over its step, by replaying its issue list.
///
///   state      state_memory.h, the whole step
///   F of a chunk, block after block:  + kept + logits
///   backward, blocks in reverse:      - kept - logits;  at first + what recompute brings back
///   B (input gradients alone):        - kept - logits + held
///   W (weight gradients):             - held
///   F beside a backward (dualpipe):   at once with overlap_ep (concurrent_liveness), else one
///                                     after the other
///   while any of them runs, of the block in work:
///              work (block_memory.h); pipeline messages: one received and one sent in each
///              direction that the stage has; with scatter_gather the gathered boundary
///              zero 3: its parameters, gathered, and with overlap_param_gather the next block's;
///              without reshard_after_forward the chunk's, from its first forward in flight to its
///              last backward
///              zero 2, 3, backward: unreduced gradients, at most a bucket (state_memory.h)
///              logits in the compute type
///   offload_activations x: of a layer's kept only 1 - x stay; the rest is there while the layer
///              and its neighbour run, and else on the host
///   then       the reduction of gradients, and the optimizer's update
///
/// A peak is the first largest moment, with its bytes by category; each block of a piece of work is
/// one moment. Time O(pieces + blocks). Schedules repeat every 2p microbatches: of more than 5p
/// only 3p to 5p are replayed, with the same peak; gpipe, which keeps them all, is stepped over.
///
/// Assumes: everything of a pass is allocated when its last block begins at the latest; offload
/// keeps up with compute.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "workload/memory/block_memory.h"
#include "workload/memory/state_memory.h"
#include "workload/plan/memory_category.h"
#include "workload/plan/plan.h"
#include "workload/plan/schedule.h"

namespace orrery::footprint {

/// A piece of work of the step, and the block of its chunk that runs.
struct MemoryMoment {
  enum class Work : std::uint8_t {
    forward,
    backward,
    input_gradient,
    weight_gradient,
    reduction,
    optimizer
  };
  Work work = Work::forward;
  std::int64_t microbatch = 0;
  std::int64_t chunk = 0;
  plan::BlockKind kind = plan::kFirstLayerBlock;
  std::int64_t layer = 0;  ///< of the model, when the block is a layer

  friend bool operator==(const MemoryMoment&, const MemoryMoment&) = default;
};
/// Returns "backward of microbatch 3, layer 12"; with chunks: "..., chunk 1, layer 12".
std::string to_string(const MemoryMoment& moment, bool with_chunk);

struct MemoryPoint {
  MemoryMoment moment;  ///< the largest of the piece of work
  Bytes bytes{0};
};

/// A stage's step.
struct MemoryTimeline {
  graph::MemoryBytes peak;
  MemoryMoment moment;
  graph::MemoryBytes highest;       ///< of each category on its own
  graph::LowerTiers lower{};        ///< the most on each tier below the device's
  std::int64_t pieces = 0;          ///< most in flight: forwards not yet freed by a backward
  graph::MemoryBytes end;           ///< after the last piece of work: the state again
  std::vector<MemoryPoint> points;  ///< pieces of work in order, the optimizer last
};

struct TimelineOptions {
  /// At most so many points are kept; 0: none. A longer list is cut into that many parts and each
  /// part's largest point is kept.
  std::int64_t points = 0;
};

/// The most that a stage holds, and on each tier below the device's.
struct MostHeld {
  Bytes total{0};
  graph::LowerTiers lower{};
};
/// Returns what memory_timeline() says of the total, for who asks of very many plans: no
/// categories, no moments.
MostHeld most_held(const BlockMemories& model, const plan::Plan& plan, std::int64_t stage,
                   const std::vector<StageChunk>& chunks);

/// Returns the timeline of stage number `stage` of a checked plan.
MemoryTimeline memory_timeline(const BlockMemories& model, const plan::Plan& plan,
                               std::int64_t stage, const std::vector<StageChunk>& chunks,
                               const TimelineOptions& options = {});

/// Returns whether of stages with equal chunks a later one never holds more: it runs the same
/// pieces with fewer microbatches ahead (gpipe, 1F1B, interleaved).
bool later_hold_less(const plan::PipelineShape& shape);

/// Returns the number of microbatches that are replayed of m, for a schedule that repeats.
std::int64_t replayed_microbatches(const plan::PipelineShape& shape);

}  // namespace orrery::footprint
