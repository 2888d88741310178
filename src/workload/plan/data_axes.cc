// SPDX-License-Identifier: Apache-2.0
#include "workload/plan/data_axes.h"

#include "workload/plan/layout.h"
#include "workload/plan/rounds.h"

namespace orrery::plan {
namespace {

/// All the ranks that an owner's parameters are the same on, but for ZeRO.
std::int64_t replicas(const Plan& plan, Owner owner) {
  return owner == Owner::dense ? worker_ranks(plan) : expert_data_parallel(plan);
}

std::vector<GradientHop> expert_hops(const Plan& plan) {
  const bool sharded = plan.zero > 0;
  return {
      {.axis = Axis::edp,
       .kind = sharded ? graph::CollectiveKind::reduce_scatter : graph::CollectiveKind::all_reduce,
       .every_microbatch = plan.zero >= 2}};
}

}  // namespace

std::vector<GradientHop> gradient_hops(const Plan& plan, Owner owner) {
  const std::int64_t together = replicas(plan, owner);
  if (together == 1) {
    return {};
  }
  if (owner == Owner::expert) {
    return expert_hops(plan);
  }
  if (plan.zero == 0) {
    return {{.axis = Axis::dp}};
  }
  const std::int64_t all = plan.dp * plan.cp;
  const ShardDegrees shards = shard_degrees(plan);
  std::vector<GradientHop> hops;
  if (shards.grads > 1) {
    hops.push_back({.axis = shards.grads == all ? Axis::dp : Axis::grad_shard,
                    .kind = graph::CollectiveKind::reduce_scatter,
                    .every_microbatch = true});
  }
  if (shards.optimizer > shards.grads) {
    const bool whole = shards.grads == 1 && shards.optimizer == all;
    hops.push_back({.axis = whole ? Axis::dp : Axis::optimizer_shard,
                    .kind = graph::CollectiveKind::reduce_scatter,
                    .divisor = shards.grads});
  }
  if (shards.optimizer < together) {
    const Axis axis = shards.optimizer == 1 ? Axis::dp : Axis::replica;
    hops.push_back({.axis = axis, .divisor = shards.optimizer});
  }
  return hops;
}

std::optional<GatherHop> update_hop(const Plan& plan, Owner owner) {
  const std::int64_t all = replicas(plan, owner);
  if (plan.zero == 0 || all == 1 || (plan.overlap_param_gather && plan.zero < 3)) {
    return std::nullopt;
  }
  if (owner == Owner::expert) {
    return plan.zero < 3 ? std::optional(GatherHop{.axis = Axis::edp}) : std::nullopt;
  }
  const ShardDegrees shards = shard_degrees(plan);
  if (shards.optimizer <= shards.params) {
    return std::nullopt;
  }
  const bool whole = shards.params == 1 && shards.optimizer == plan.dp * plan.cp;
  return GatherHop{.axis = whole ? Axis::dp : Axis::update, .divisor = shards.params};
}

std::optional<GatherHop> parameter_hop(const Plan& plan, Owner owner) {
  const std::int64_t all = replicas(plan, owner);
  if (plan.zero == 0 || all == 1) {
    return std::nullopt;
  }
  if (plan.zero < 3) {  // updated parameters, in the first forward pass
    Plan apart = plan;
    apart.overlap_param_gather = false;
    return plan.overlap_param_gather ? update_hop(apart, owner) : std::nullopt;
  }
  if (owner == Owner::expert) {
    return GatherHop{.axis = Axis::edp};
  }
  const std::int64_t shards = shard_degrees(plan).params;
  return shards == 1 ? std::nullopt
                     : std::optional(
                           GatherHop{.axis = shards == plan.dp * plan.cp ? Axis::dp : Axis::shard});
}

std::vector<Axis> norm_axes(const Plan& plan) {
  std::vector<Axis> axes;
  if (plan.tp > 1) {
    axes.push_back(Axis::tp);
  }
  const std::int64_t all = plan.dp * plan.cp;
  if (plan.zero >= 1 && worker_ranks(plan) == all && all > 1) {
    axes.push_back(Axis::dp);
  } else if (plan.zero >= 1 && worker_ranks(plan) > 1) {
    const ShardDegrees shards = shard_degrees(plan);
    if (shards.grads > 1) {
      axes.push_back(Axis::grad_shard);
    }
    if (shards.optimizer > shards.grads) {
      axes.push_back(Axis::optimizer_shard);
    }
  }
  if (plan.pp > 1) {
    axes.push_back(Axis::pp);
  }
  return axes;
}

std::int64_t optimizer_shards(const Plan& plan, Owner owner) {
  if (plan.zero == 0) {
    return 1;
  }
  return owner == Owner::expert ? replicas(plan, owner) : shard_degrees(plan).optimizer;
}

Bytes bucket_size(const Plan& plan) {
  if (plan.bucket_parameters > 0 || plan.bucket_parameters_per_rank > 0) {
    const Bytes ranks = Bytes(plan.bucket_parameters_per_rank) * (plan.dp * plan.cp);
    const Bytes parameters = std::max(Bytes(plan.bucket_parameters), ranks);
    return graph::bytes_of(plan.grad_reduce_type, parameters.value());
  }
  constexpr std::int64_t kElements = 500'000'000;
  const bool limited = plan.bucket == Bytes(0) && plan.zero >= 2 && !plan.overlap_grad_reduce;
  return limited ? graph::bytes_of(plan.grad_reduce_type, kElements) : plan.bucket;
}

}  // namespace orrery::plan
