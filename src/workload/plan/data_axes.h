// SPDX-License-Identifier: Apache-2.0
/// Says over which communicators gradients are reduced and parameters gathered (layout.h has the
/// axes).
///
///   dense, n = dp cp ranks, shards s_p <= s_o of parameters, s_g <= s_o of gradients:
///     zero 0    all-reduce over dp
///     else      reduce-scatter over the s_g gradient shards (every microbatch), then from s_g to
///               the s_o optimizer shards, then all-reduce over the n / s_o replicas; steps of one
///               rank fall away
///     gathers   parameters over the s_p shards (zero 3); updated ones from s_o to s_p shards
///   expert      the same over edp, which ZeRO shards wholly
///   rounds      n are the ranks of a worker (rounds.h), as far as gradients and shards go
#pragma once

#include <optional>
#include <vector>

#include "workload/plan/axes.h"
#include "workload/plan/plan.h"

namespace orrery::plan {

enum class Owner : std::uint8_t { dense, expert };
inline constexpr std::array kOwners = {Owner::dense, Owner::expert};

struct GradientHop {
  Axis axis = Axis::dp;
  graph::CollectiveKind kind = graph::CollectiveKind::all_reduce;
  std::int64_t divisor = 1;  ///< the buffer is this share of all gradients
  bool every_microbatch = false;
};
/// Returns the hops in the order in which they run; empty when one rank has all of the batch.
std::vector<GradientHop> gradient_hops(const Plan& plan, Owner owner);

/// Returns the bytes of gradients, in the type on the wire, that are reduced at once; 0: one block
/// with overlap_grad_reduce, else all. The most of bucket_parameters and dp x cp times
/// bucket_parameters_per_rank, if they are given (Megatron-Core's max(40 M, 1 M x dp)); else the
/// plan's `bucket`; without one and without overlap zero 2 and 3 take DeepSpeed's
/// reduce_bucket_size of 5e8 elements, as one buffer of all gradients would undo what sharding them
/// saves.
Bytes bucket_size(const Plan& plan);

struct GatherHop {
  Axis axis = Axis::dp;
  std::int64_t divisor = 1;  ///< the gathered buffer is this share of all parameters
};
/// Returns the gather of sharded parameters beside the layers: zero 3, or updated ones with
/// overlap_param_gather. nullopt: they are whole.
std::optional<GatherHop> parameter_hop(const Plan& plan, Owner owner);
/// Gather of updated parameters at the end of the step; nullopt: none, or beside the layers.
std::optional<GatherHop> update_hop(const Plan& plan, Owner owner);
/// Axes over which the norm of all parameters, or gradients, of a worker (rounds.h) is summed.
std::vector<Axis> norm_axes(const Plan& plan);
/// Returns the number of ranks that share optimizer states.
std::int64_t optimizer_shards(const Plan& plan, Owner owner);

}  // namespace orrery::plan
