// SPDX-License-Identifier: Apache-2.0
/// Data-parallel workers that step alone: a worker is the ranks that ZeRO shards over (the largest
/// of shard_params, shard_grads, shard_optimizer, at least cp; one rank without any), which reduce
/// their gradients in every step. The W = dp x cp / worker workers come together once in a round of
/// tau = local_steps steps. x: local parameters, x0: those at the beginning of the round, m: outer
/// momentum, d = x0 - mean of x over workers, Lambda >= 1: the gap of staleness.
///
///   local_sgd   x <- mean of x                                   (McMahan et al. 2017)
///   slow_mo     m <- beta m + d / gamma;  x0 <- x0 - alpha gamma m     (Wang et al. 2020)
///   diloco      m <- beta m + d;  x0 <- x0 - alpha (beta m + d)        (Douillard et al. 2023)
///   co2         as slow_mo, with d of the round before, divided by Lambda, and m clipped to
///               [-phi, phi]: the all-reduce of a round runs beside the next one, and the first
///               round updates nothing                 (Sun et al. 2024, arXiv:2401.16265)
///
///   T_round = tau t_step + t_outer + T_allreduce;  of co2  max(tau t_step + t_outer, T_allreduce)
///
/// The loop runs the steps; the formula is what a test compares. alpha, beta, gamma, phi change
/// neither time nor memory.
///
/// End of a round, in bytes for each of the worker's parameters on a rank (w master_type, e
/// compute_type where that is another, r grad_reduce_type, what is sent):
///   pack        x0 - x into the buffer: 2 w + r; local_sgd: x, w + r
///   all-reduce  r over W
///   gap         co2: norms of m and of d: w + r, and their sum over the ranks of the worker
///   update      r + 5 w + e: d, x0, m read, x0, m, x written; local_sgd: r + w + e
///   shard_outer: x is sent, a reduce-scatter; x0 and m are 1/W; an all-gather of x0 (r) follows
///               (r + 4 w) / W, then r + w + e writes x
///
/// Memory: x0 and m, w each; of co2 the buffer too, r, and a second one while a round ends. With
/// shard_outer x0 and m are 1/W, and co2 keeps x0 of two rounds.
#pragma once

#include <cstdint>

#include "workload/plan/plan.h"

namespace orrery::plan {

/// Returns whether workers step alone.
bool runs_rounds(const Plan& plan);

/// Returns the number of ranks of dp x cp that reduce their gradients in every step.
std::int64_t worker_ranks(const Plan& plan);
/// Workers that come together at the end of a round; 1 where all ranks do in every step.
std::int64_t workers(const Plan& plan);

/// The run whose mean step is a plan's: whole rounds, the first two of which are the warm-up. One
/// step where no round is.
struct RoundRun {
  std::int64_t steps = 1;
  std::int64_t warm = 0;
};
RoundRun round_run(const Plan& plan);

/// Bytes for each of a worker's parameters on a rank; of shards by ShardDegrees::optimizer before.
struct OuterBytes {
  Bytes pack{0};  ///< read and written
  Bytes gap{0};
  Bytes update{0};   ///< of 1/W with shard_outer
  Bytes apply{0};    ///< shard_outer alone
  Bytes sent{0};     ///< of the all-reduce, or of each half of it
  Bytes states{0};   ///< all the run, of 1/W with shard_outer
  Bytes buffer{0};   ///< all the run
  Bytes passing{0};  ///< while a round ends
};
OuterBytes outer_bytes(const Plan& plan);

/// Every reason why rounds cannot be: fields without workers, experts, offload.
Error round_mistakes(const Plan& plan, const zoo::Model& model);

}  // namespace orrery::plan
