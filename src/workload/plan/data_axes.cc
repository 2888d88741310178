// SPDX-License-Identifier: Apache-2.0
#include "workload/plan/data_axes.h"

#include "workload/plan/layout.h"
#include "workload/plan/rounds.h"

namespace orrery::plan {
namespace {

/// An owner's ranks, and over how many of them its tensors are sharded.
struct Sharded {
  Axis whole = Axis::dp;      ///< of all these ranks
  std::int64_t all = 1;       ///< that its parameters are the same on, but for ZeRO
  std::int64_t together = 1;  ///< of them those of a worker
  ShardDegrees over{};
};

Sharded sharded(const Plan& plan, Owner owner) {
  if (owner == Owner::dense) {
    return {Axis::dp, plan.dp * plan.cp, worker_ranks(plan),
            plan.zero > 0 ? shard_degrees(plan) : ShardDegrees()};
  }
  const std::int64_t all = expert_data_parallel(plan);
  const auto from = [&](int zero) { return plan.zero >= zero ? all : 1; };
  return {Axis::edp, all, all, {.params = from(3), .grads = from(2), .optimizer = from(1)}};
}

/// Returns the axis that makes so many shards more of them, `part` where it is not all ranks.
Axis axis_between(const Sharded& of, std::int64_t shards, std::int64_t more, Axis part) {
  return shards == 1 && more == of.all ? of.whole : part;
}

}  // namespace

std::vector<GradientHop> gradient_hops(const Plan& plan, Owner owner) {
  const Sharded of = sharded(plan, owner);
  std::vector<GradientHop> hops;
  if (of.together == 1) {
    return hops;
  }
  const auto scatter = [&](std::int64_t shards, std::int64_t more, Axis part, bool always) {
    if (more > shards) {
      hops.push_back({.axis = axis_between(of, shards, more, part),
                      .kind = graph::CollectiveKind::reduce_scatter,
                      .divisor = shards,
                      .every_microbatch = always});
    }
  };
  const auto& [params, grads, optimizer] = of.over;
  scatter(1, grads, Axis::grad_shard, true);
  scatter(grads, optimizer, Axis::optimizer_shard, false);
  if (optimizer < of.together) {
    hops.push_back({.axis = optimizer == 1 ? of.whole : Axis::replica, .divisor = optimizer});
  }
  return hops;
}

std::optional<GatherHop> update_hop(const Plan& plan, Owner owner) {
  const Sharded of = sharded(plan, owner);
  const auto& [params, grads, optimizer] = of.over;
  if (of.together == 1 || optimizer <= params || (plan.overlap_param_gather && plan.zero < 3)) {
    return std::nullopt;
  }
  return GatherHop{.axis = axis_between(of, params, optimizer, Axis::update), .divisor = params};
}

std::optional<GatherHop> parameter_hop(const Plan& plan, Owner owner) {
  if (plan.zero < 3) {  // updated parameters, in the first forward pass
    Plan apart = plan;
    apart.overlap_param_gather = false;
    return plan.overlap_param_gather ? update_hop(apart, owner) : std::nullopt;
  }
  const Sharded of = sharded(plan, owner);
  const std::int64_t shards = of.over.params;
  return of.together == 1 || shards == 1
             ? std::nullopt
             : std::optional(GatherHop{.axis = axis_between(of, 1, shards, Axis::shard)});
}

std::vector<Axis> norm_axes(const Plan& plan) {
  std::vector<Axis> axes;
  const auto add = [&](bool applies, Axis axis) {
    if (applies) {
      axes.push_back(axis);
    }
  };
  const Sharded of = sharded(plan, Owner::dense);
  const bool zero = plan.zero >= 1 && of.together > 1;
  const bool whole = of.together == of.all;
  add(plan.tp > 1, Axis::tp);
  add(zero && whole, Axis::dp);
  add(zero && !whole && of.over.grads > 1, Axis::grad_shard);
  add(zero && !whole && of.over.optimizer > of.over.grads, Axis::optimizer_shard);
  add(plan.pp > 1, Axis::pp);
  return axes;
}

std::int64_t optimizer_shards(const Plan& plan, Owner owner) {
  return sharded(plan, owner).over.optimizer;
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
