// SPDX-License-Identifier: Apache-2.0
/// Says where a plan's ranks and communicators lie.
///
///   order      names the axes, innermost first: "tp-cp-dp-pp", "tp-pp-dp". cp stands right after
///              tp and an axis of degree 1 anywhere when they are not named; "ep" may stand in the
///              order, as in Megatron-LM's, and means nothing: experts share the ranks of tp x cp
///              x dp.
///   dp         reductions of dense parameters: dp x cp ranks
///   experts    the ranks of tp x cp x dp of one stage once more, as etp x ep x edp, etp innermost
///   shards     of n = dp x cp ranks the innermost s_p share parameters, s_g gradients, s_o
///              optimizer states:
///                shard s_p;  grad_shard s_g;  optimizer_shard s_o / s_g between them;
///                replica n / s_o;  update s_o / s_p
///              All of dp (degree 0 or n) is the communicator dp itself.
///                secondary and reduce_near the innermost of these, reduce_far s_g / reduce_near
///              (low_bandwidth.h)
///   workers    outer: the ranks with the same place in their workers (rounds.h)
///   cp         a2a+p2p: cp_a2a the innermost ranks of cp, cp_ring the rest
#pragma once

#include "collective/cost.h"
#include "workload/plan/axes.h"
#include "workload/plan/plan.h"

namespace orrery::plan {

/// Axes of the plan's order, innermost first, each of tp, cp, dp, pp once. Mistakes: axes that are
/// unknown, stand twice, or are missing though their degree is above 1.
Result<std::vector<Axis>> parse_order(const Plan& plan);

/// Degrees that ZeRO really uses: those of the plan, all ranks of a worker (rounds.h) for 0,
/// 1 for what the stage does not shard.
struct ShardDegrees {
  std::int64_t params = 1;
  std::int64_t grads = 1;
  std::int64_t optimizer = 1;
};
ShardDegrees shard_degrees(const Plan& plan);

/// Returns the number of ranks that hold the same expert parameters: tp cp dp / (etp ep).
std::int64_t expert_data_parallel(const Plan& plan);
/// Returns the tensor-parallel degree inside an expert.
std::int64_t expert_tensor_parallel(const Plan& plan);

/// Requires a checked plan. experts: with etp, ep and edp.
RankLayout layout_of(const Plan& plan, bool experts = false);

/// Returns the algorithms that the plan wants the communicators of its axes to run.
collective::AlgorithmChoice algorithms_of(const Plan& plan);

/// Every reason why the degrees cannot be laid out: orders, shards that do not divide, experts that
/// do not tile the ranks.
Error layout_mistakes(const Plan& plan);

}  // namespace orrery::plan
