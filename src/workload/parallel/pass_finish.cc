// SPDX-License-Identifier: Apache-2.0
/// The end of the step, after the gradients are reduced.
///
/// Tied embedding: first and last stage sum the gradients of their copies, whole also when ZeRO
/// shards them, as Megatron-LM does. Optimizer, over E local parameters (1/dp of them with ZeRO >=
/// 1), each as one multi-tensor kernel:
///   to fp32         mixed precision with smaller gradients: reads E gradients, writes fp32 copies
///   unscale         fp16: reads and writes the fp32 gradients (loss scale, infinities)
///   gradient norm   reads E gradients; one fp32 value is summed over tp, pp and (sharded) dp
///   clip            reads and writes E gradients
///   Adam            reads the gradient; reads and writes parameter and two moments, all fp32
///   cast            mixed precision: reads fp32 parameters, writes them in the compute type
///   gather          ZeRO 1 and 2: all-gather of the updated parameters, unless overlapped
///   clear           writes the gradient buffer
/// Memory binds all of them, so none counts FLOPs (see zoo/model.h).
/// Source: Micikevicius et al. 2018 (mixed precision); the steps are those of Megatron-LM's
/// Float16OptimizerWithFloat16Params.
#include "workload/parallel/passes.h"
#include "workload/parallel/shard.h"

namespace orrery {
namespace {

bool mixed_precision(const Plan& plan) {
  return size_of(plan.compute_type) < size_of(DataType::fp32);
}

Step optimizer_step(std::string name, std::int64_t elements, Bytes bytes_each) {
  return compute_step({.name = std::move(name),
                       .kind = OperatorKind::optimizer,
                       .type = DataType::fp32,
                       .gemm = {},
                       .bytes = bytes_each * elements},
                      Phase::optimizer);
}

/// The norm of all gradients: every axis over which they are spread.
void append_norm_reductions(std::vector<Step>& steps, const Plan& plan) {
  const Bytes value = size_of(DataType::fp32);
  const auto sum = [&](Axis axis) {
    steps.push_back(collective_step(axis, CollectiveKind::all_reduce, value, Phase::optimizer));
  };
  if (plan.tp > 1) {
    sum(Axis::tp);
  }
  if (plan.zero >= 1 && plan.dp * plan.cp > 1) {
    sum(Axis::dp);
  }
  if (plan.pp > 1) {
    sum(Axis::pp);
  }
}

void append_update_gathers(std::vector<Step>& steps, const Draft& draft, const Context& context,
                           const RoleDraft& role) {
  for (const Owner owner : {Owner::dense, Owner::expert}) {
    const std::int64_t parameters = role_parameters(draft, context, role, owner);
    const auto hop = update_hop(context.plan, owner);
    if (hop && parameters > 0) {
      steps.push_back(collective_step(
          hop->axis, CollectiveKind::all_gather,
          size_of(context.plan.compute_type) * parameters / hop->divisor, Phase::optimizer));
    }
  }
}

}  // namespace

void passes::embedding(Draft& draft, const Context& context) {
  const Plan& plan = context.plan;
  if (!context.model.tied_embedding || plan.pp == 1) {
    return;
  }
  std::int64_t table = 0;
  for (const ModelOperator& op : draft.operators[kHeadBlock]) {
    table += weight_elements(op);
  }
  for (RoleDraft* role : {&draft.roles.front(), &draft.roles.back()}) {
    role->finish.push_back(collective_step(Axis::embedding, CollectiveKind::all_reduce,
                                           size_of(plan.grad_reduce_type) * table,
                                           Phase::optimizer));
  }
}

void passes::optimizer(Draft& draft, const Context& context) {
  const Plan& plan = context.plan;
  const Bytes grad = size_of(plan.grad_type);
  const Bytes single = size_of(DataType::fp32);
  const bool mixed = mixed_precision(plan);
  for (RoleDraft& role : draft.roles) {
    std::int64_t whole = 0;
    std::int64_t local = 0;
    for (const Owner owner : {Owner::dense, Owner::expert}) {
      const std::int64_t parameters = role_parameters(draft, context, role, owner);
      const std::int64_t shards = optimizer_shards(plan, owner);
      whole += parameters;
      local += (parameters + shards - 1) / shards;
    }
    std::vector<Step>& steps = role.finish;
    if (mixed && grad < single) {
      steps.push_back(optimizer_step("gradients_to_fp32", local, grad + single));
    }
    if (plan.compute_type == DataType::fp16) {
      steps.push_back(optimizer_step("unscale_gradients", local, 2 * single));
    }
    steps.push_back(optimizer_step("gradient_norm", local, single));
    append_norm_reductions(steps, plan);
    steps.push_back(optimizer_step("clip_gradients", local, 2 * single));
    steps.push_back(optimizer_step("adam", local, 7 * single));
    if (mixed) {
      steps.push_back(
          optimizer_step("cast_parameters", local, single + size_of(plan.compute_type)));
    }
    append_update_gathers(steps, draft, context, role);
    steps.push_back(optimizer_step("clear_gradients", plan.zero >= 2 ? local : whole, grad));
  }
}

}  // namespace orrery
