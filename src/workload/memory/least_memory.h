// SPDX-License-Identifier: Apache-2.0
/// Bytes that a plan cannot do with less than, in O(blocks of two stages): for searches that look
/// at very many plans.
///
///   of the first and the last stage:   state (state_memory.h) + what the framework takes
///                                      + kept by the most pieces in flight (plan/schedule.h)
///                                      + what the last block of a chunk needs for its backward
///
/// Messages, gathered parameters and the end of the step are left out. Schedules that
/// split the backward keep, of a piece, the less of what its forward and its input gradients keep.
#pragma once

#include <vector>

#include "base/units.h"
#include "machine/machine.h"
#include "workload/memory/block_memory.h"
#include "workload/plan/model_parts.h"
#include "workload/plan/plan.h"
#include "workload/plan/schedule.h"
#include "workload/zoo/model.h"

namespace orrery::footprint {

/// Most pieces in flight by chunk, on the first and on the last stage.
struct EndPieces {
  std::vector<std::int64_t> first;
  std::vector<std::int64_t> last;
};
EndPieces pieces_at_ends(const plan::PipelineShape& shape);

/// Never above the fullest stage's StageMemory::total(). `parts`: split_model() of the plan;
/// `pieces`: pieces_at_ends() of its pipeline.
Bytes least_memory(const zoo::Model& model, const BlockMemories& blocks, const plan::Plan& plan,
                   const std::vector<std::vector<plan::ModelPart>>& parts,
                   const machine::Machine& machine, const EndPieces& pieces);

/// Of a chunk, per microbatch: what its layers keep from forward to backward.
Bytes kept_by_layers(const zoo::Model& model, const BlockMemories& blocks, const plan::Plan& plan,
                     const plan::ModelPart& part);

}  // namespace orrery::footprint
