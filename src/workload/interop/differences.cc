// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "base/format.h"
#include "base/lists.h"
#include "workload/interop/interop.h"
#include "workload/interop/text.h"
#include "workload/plan/layout.h"
#include "workload/plan/model_parts.h"
#include "workload/plan/schedule.h"
#include "workload/plan/shard.h"

namespace orrery::interop {
namespace {

/// Axes of more than one rank, innermost first.
std::vector<plan::Axis> used_axes(const plan::Plan& plan, const std::vector<plan::Axis>& axes) {
  std::vector<plan::Axis> used;
  for (const plan::Axis axis : axes) {
    const std::int64_t degree = axis == plan::Axis::tp   ? plan.tp
                                : axis == plan::Axis::cp ? plan.cp
                                : axis == plan::Axis::pp ? plan.pp
                                                         : plan.dp;
    if (degree > 1) {
      used.push_back(axis);
    }
  }
  return used;
}

std::string canonical_order(const plan::Plan& plan) {
  const auto axes = plan::parse_order(plan);
  if (!axes) {
    return plan.order;
  }
  plan::Plan standard = plan;
  standard.order = plan::Plan().order;
  const auto usual = plan::parse_order(standard);
  if (usual && used_axes(plan, *axes) == used_axes(plan, *usual)) {
    return standard.order;
  }
  return joined(*axes, "-", [&](const plan::Axis axis) { return name_of(axis); });
}

/// Returns the list without blanks; "" when all parts have the same number of layers.
std::string canonical_layers(std::string layers) {
  layers.erase(std::remove(layers.begin(), layers.end(), ' '), layers.end());
  std::string rest = layers + ",";
  const std::string first = rest.substr(0, rest.find(',') + 1);
  while (rest.starts_with(first)) {
    rest.erase(0, first.size());
  }
  return rest.empty() ? "" : layers;
}

/// "auto" as the numbers that it stands for; where the model does not divide, as it is.
std::string counted_layers(const plan::Plan& plan, const zoo::Model& model) {
  const auto split = plan::split_layers(model, plan);
  if (plan.stage_layers != "auto" || !split) {
    return plan.stage_layers;
  }
  const plan::PipelineShape shape{plan.schedule, plan.pp, plan::chunks_of(plan), 1};
  std::vector<std::int64_t> counts(static_cast<std::size_t>(plan::part_count(shape)));
  for (std::size_t stage = 0; stage < split->size(); ++stage) {
    for (std::size_t chunk = 0; chunk < (*split)[stage].size(); ++chunk) {
      const std::int64_t part =
          plan::part_of(shape, static_cast<std::int64_t>(stage), static_cast<std::int64_t>(chunk));
      counts[static_cast<std::size_t>(part)] = (*split)[stage][chunk];
    }
  }
  return joined(counts, ",");
}

void forget_unused_axes(plan::Plan& plan) {
  const plan::Plan plain;
  if (plan.tp == 1) {
    plan.sequence_parallel = false;
    plan.tp_chunks = 1;
    plan.overlap_tensor = plain.overlap_tensor;
    plan.overlap_tp = plain.overlap_tp;
    plan.tp_algorithm = plain.tp_algorithm;
  }
  if (plan.tp == 1 || plan.pp == 1 || plan.sequence_parallel) {
    plan.pipeline_send = plain.pipeline_send;
  }
  if (plan.pp == 1) {
    plan.overlap_p2p = plain.overlap_p2p;
    plan.stage_layers = plain.stage_layers;
  }
  if (plan.cp == 1) {
    plan.cp_exchange = plain.cp_exchange;
  }
  if (plan.cp_exchange != plan::ContextExchange::a2a_p2p) {
    plan.cp_a2a = 1;
  }
}

void forget_unused_shards(plan::Plan& plan) {
  const std::int64_t ranks = plan.dp * plan.cp;
  const auto degree = [&](std::int64_t shards, std::int64_t from_stage) {
    return plan.zero < from_stage || shards == ranks ? 0 : shards;
  };
  plan.shard_params = degree(plan.shard_params, 3);
  plan.shard_grads = degree(plan.shard_grads, 2);
  plan.shard_optimizer = degree(plan.shard_optimizer, 1);
  if (plan.zero < 3) {
    plan.reshard_after_forward = true;
  }
  if (plan.zero == 0) {
    plan.overlap_param_gather = false;
  }
  if (plan.bucket_parameters > 0 || plan.bucket_parameters_per_rank > 0) {
    plan.bucket = Bytes(0);  // those count
  }
  if (ranks == 1) {
    plan.overlap_grad_reduce = plan.overlap_param_gather = false;
    plan.bucket = Bytes(0);
  }
}

}  // namespace

plan::Plan canonical(plan::Plan plan, const zoo::Model* model) {
  forget_unused_axes(plan);
  forget_unused_shards(plan);
  plan.etp = plan.etp == plan.tp ? 0 : plan.etp;
  plan.order = canonical_order(plan);
  plan.stage_layers =
      canonical_layers(model == nullptr ? plan.stage_layers : counted_layers(plan, *model));
  if (plan.recompute == plan::Recompute::none && plan.recompute_modules.empty()) {
    plan.recompute_layers = 0;
  }
  if (plan.sequence == 0 && model != nullptr) {
    plan.sequence = plan::sequence_of(*model, plan);
  }
  return plan;
}

std::vector<Remark> differences(const plan::Plan& plan, const plan::Plan& read_back,
                                const zoo::Model* model) {
  const plan::Plan mine = canonical(plan, model);
  const plan::Plan theirs = canonical(read_back, model);
  std::vector<Remark> found;
  plan::Plan::fields([&](std::string_view name, auto member, std::string_view) {
    if (!(mine.*member == theirs.*member)) {
      found.push_back({std::string(name), "the plan has " + exact_text(mine.*member) +
                                              "; read back it is " + exact_text(theirs.*member)});
    }
  });
  return found;
}

}  // namespace orrery::interop
