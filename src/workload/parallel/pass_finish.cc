// SPDX-License-Identifier: Apache-2.0
/// The end of the step, after the gradients are reduced.
///
/// Tied embedding: first and last stage sum the gradients of their copies, whole also when ZeRO
/// shards them, as Megatron-LM does. Optimizer, over E local parameters (1/dp of them with ZeRO >=
/// 1), each as one multi-tensor kernel:
///   gradient norm   reads E gradients; one fp32 value is summed over tp, pp and (sharded) dp
///   clip            reads and writes E gradients
///   Adam            reads the gradient; reads and writes master parameter (mixed precision only)
///   and
///                   two moments, fp32 each; writes the parameter in the compute type
///   gather          ZeRO 1 and 2: all-gather of the updated parameters, unless overlapped
///   clear           writes the gradient buffer
/// Memory binds all of them, so none counts FLOPs (see zoo/model.h).
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
  if (plan.zero >= 1 && plan.dp > 1) {
    sum(Axis::dp);
  }
  if (plan.pp > 1) {
    sum(Axis::pp);
  }
}

}  // namespace

void passes::embedding(Draft& draft, const Context& context) {
  const Plan& plan = context.plan;
  if (!context.model.tied_embedding || plan.pp == 1) {
    return;
  }
  std::int64_t table = 0;
  for (const ModelOperator& op : draft.operators[index_of(BlockKind::head)]) {
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
  const Bytes state = size_of(DataType::fp32);
  const bool mixed = mixed_precision(plan);
  const Bytes adam =
      grad + 2 * (mixed ? 3 : 2) * state + (mixed ? size_of(plan.compute_type) : 2 * state);
  for (RoleDraft& role : draft.roles) {
    const std::int64_t whole = role_parameters(draft, context, role);
    const std::int64_t local = plan.zero >= 1 ? (whole + plan.dp - 1) / plan.dp : whole;
    std::vector<Step>& steps = role.finish;
    steps.push_back(optimizer_step("gradient_norm", local, grad));
    append_norm_reductions(steps, plan);
    steps.push_back(optimizer_step("clip_gradients", local, 2 * grad));
    steps.push_back(optimizer_step("adam", local, adam));
    const bool sharded = plan.zero == 1 || plan.zero == 2;
    if (sharded && plan.dp > 1 && !plan.overlap_param_gather && whole > 0) {
      steps.push_back(collective_step(Axis::dp, CollectiveKind::all_gather,
                                      size_of(plan.compute_type) * whole, Phase::optimizer));
    }
    steps.push_back(optimizer_step("clear_gradients", plan.zero >= 2 ? local : whole, grad));
  }
}

}  // namespace orrery
