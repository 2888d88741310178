// SPDX-License-Identifier: Apache-2.0
/// V schedules that hold fewer activations than zb-v, as runs (schedule_runs.h).
///
///   F forward, B input gradients, W weight gradients; p stages, s stage. Chunks as of zb-v: 0 down
///   the stages and 1 back up.
///
///   v-half  Time is in passes, F = B = W = 1: a microbatch takes 2, 1, 2, ... passes from stage to
///           stage forward and 1, 2, 1, ... backward, so its six passes on a stage fall on six
///           different places of every round of 6, and the stage runs them in that order. One
///           microbatch follows another by a round.
///           bubble about (p-1)/2 (F + B + W), within one pass; at most (p+2)/2 whole microbatches,
///           rounded down, in flight
///   v-min   the same with 1 pass from stage to stage.
///           bubble about 2 (p-1)/3 (F + B + W); at most (p+4)/3 in flight
///
/// Where F, B and W differ the order stays, and every round takes as long as its longest way. With
/// fewer than about p microbatches those that do not exist are left out of the order.
///
/// Source: Qi et al. 2024 (Pipeline Parallelism with Controllable Memory): memory and bubbles.
/// Their own orders are searched for by cost, where these are laid out by rule.
#pragma once

#include "workload/plan/schedule_runs.h"

namespace orrery::plan {

RunList v_half_runs(const PipelineShape& shape, std::int64_t stage);
RunList v_min_runs(const PipelineShape& shape, std::int64_t stage);

}  // namespace orrery::plan
