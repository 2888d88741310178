// SPDX-License-Identifier: Apache-2.0
/// V schedules that hold fewer activations than zb-v, as runs (schedule_runs.h).
///
///   F forward, B input gradients, W weight gradients; p stages, s stage. Chunks as of zb-v: 0 down
///   the stages and 1 back up.
///
///   v-half  Time is in slots, as if F = B = W = 1. A microbatch takes two slots from stage to
///           stage on its way down (forwards of chunk 0, backwards of chunk 1) and one on its way
///           up, so that its F and B fall on four places of every round of six; the next one
///           follows by a round. W take the slots left, first in, first out. Then the ends are
///           squeezed: passes move to free slots before theirs while no stage holds more than the
///           fullest did, and after the last forward of a stage its B go first.
///           bubble at F = B = W: (p-1)/2 (F + B + W) less one slot (p even: four); at most
///           (p+2)/2 whole microbatches, rounded down, in flight
///   v-min   the same with one slot from stage to stage either way.
///           bubble at F = B = W: 2 (p-1)/3 (F + B + W) less one to three slots; at most (p+4)/3 in
///           flight
///
/// Stages run the passes in the order of their slots whatever they take; where F, B and W differ
/// every round takes as long as its longest way.
///
/// Source: Qi et al. 2024 (Pipeline Parallelism with Controllable Memory), building blocks and
/// their squeezing; sail-sg/zero-bubble-pipeline-parallelism and AMD-AGI/Primus run these.
#pragma once

#include "workload/plan/schedule_runs.h"

namespace orrery::plan {

RunList v_half_runs(const PipelineShape& shape, std::int64_t stage);
RunList v_min_runs(const PipelineShape& shape, std::int64_t stage);

}  // namespace orrery::plan
