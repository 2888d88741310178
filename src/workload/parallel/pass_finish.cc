// SPDX-License-Identifier: Apache-2.0
/// The end of the step, after the gradients are reduced.
///
/// Tied embedding: first and last stage sum the gradients of their copies, whole also when ZeRO
/// shards them, as Megatron-LM does. Optimizer, over E local parameters (1/dp of them with ZeRO >=
/// 1), each as one multi-tensor kernel:
///   to fp32         mixed precision with smaller gradients: reads E gradients, writes fp32 copies
///   unscale         fp16: reads and writes the gradients (loss scale, infinities)
///   gradient norm   reads E gradients; one fp32 value is summed over tp, pp and (sharded) dp
///   clip            reads and writes E gradients
///   Adam            reads the gradient g; reads and writes parameter M and two moments m:
///                   g + 2 M + 4 m bytes each (master_type, moment_type; all fp32: 28); other
///                   optimizers by plan/optimizer.h
///   cast            mixed precision: reads the master's parameters, writes the compute copies;
///                   autocast makes these in every forward pass
///   offload_optimizer: clip, Adam and cast run on the host (offload.h), or, with states in remote
///                   memory, on the device in pieces between their loads and stores (remote.h)
///   gather          ZeRO 1 and 2: all-gather of the updated parameters, unless overlapped
///   clear           writes the gradient buffer, but where gradients come and go
/// With a smaller master or moments the kernels take the gradients as they are (Transformer
/// Engine's FusedAdam in Megatron's precision-aware optimizer). A 16-bit master of 16-bit
/// parameters is these parameters: there is no cast. The scales of 8-bit moments, one per block of
/// 256 or more (Dettmers et al. 2022), are not counted. Memory binds all of them, so none counts
/// FLOPs (see zoo/model.h). Source: Micikevicius et al. 2018 (mixed precision); the steps are those
/// of Megatron-LM's Float16OptimizerWithFloat16Params.
#include "workload/parallel/block_workload.h"
#include "workload/parallel/offload.h"
#include "workload/parallel/passes.h"
#include "workload/parallel/remote.h"
#include "workload/plan/shard.h"
#include "workload/plan/update_pieces.h"

namespace orrery::parallel {
namespace {

/// The optimizer updates a copy of its own of the parameters.
bool has_master(const plan::Plan& plan) {
  return graph::size_of(plan.compute_type) < graph::size_of(plan.master_type) ||
         plan.quantized_params;
}

/// Returns the bytes of a gradient as the optimizer's kernels read it.
Bytes optimizer_gradient(const plan::Plan& plan) {
  const bool plain =
      plan.master_type == graph::DataType::fp32 && plan.moment_type == graph::DataType::fp32;
  return plain ? graph::size_of(graph::DataType::fp32) : graph::size_of(plan.grad_type);
}

OptimizerShare share_of(const Draft& draft, const Context& context, const RoleDraft& role) {
  OptimizerShare share;
  for (const plan::Owner owner : {plan::Owner::dense, plan::Owner::expert}) {
    const std::int64_t parameters = role_parameters(draft, context, role, owner);
    const std::int64_t shards = plan::optimizer_shards(context.plan, owner);
    share.whole += parameters;
    share.local += (parameters + shards - 1) / shards;
    share.copies += role_parameter_bytes(draft, context, role, owner) / shards;
    share.matrices += role_matrices(draft, role, owner) / shards;
  }
  return share;
}

Step optimizer_step(std::string name, Bytes bytes, graph::DataType type = graph::DataType::fp32) {
  return compute_step({.name = std::move(name),
                       .kind = graph::OperatorKind::optimizer,
                       .type = type,
                       .gemm = {},
                       .bytes = bytes},
                      plan::StepPhase::optimizer);
}

/// The device's own update.
void append_update(std::vector<Step>& steps, const plan::Plan& plan, const OptimizerShare& share) {
  const Bytes gradient = optimizer_gradient(plan);
  steps.push_back(optimizer_step("clip_gradients", 2 * gradient * share.local));
  if (plan.optimizer == plan::Optimizer::muon) {
    steps.push_back(compute_step({.name = "orthogonalize",
                                  .kind = graph::OperatorKind::opaque,
                                  .type = graph::DataType::bf16,
                                  .gemm = {},
                                  .flops = Flops(static_cast<double>(share.matrices.flops))},
                                 plan::StepPhase::optimizer));
  }
  steps.push_back(optimizer_step(std::string(name_of(plan.optimizer)),
                                 plan::update_bytes(plan, gradient, share.local, share.matrices),
                                 plan.moment_type));
  if (has_master(plan) && !plan.autocast) {
    steps.push_back(optimizer_step("cast_parameters",
                                   graph::size_of(plan.master_type) * share.local + share.copies));
  }
}

/// Piece after piece, each between its load and its store.
void append_streamed_update(std::vector<Step>& steps, const plan::Plan& plan,
                            const OptimizerShare& share) {
  const OptimizerShare piece{.whole = share.whole / plan::kUpdatePieces,
                             .local = (share.local + plan::kUpdatePieces - 1) / plan::kUpdatePieces,
                             .copies = share.copies / plan::kUpdatePieces};
  begin_streamed_update(steps);
  for (std::int64_t i = 0; i < plan::kUpdatePieces; ++i) {
    append_update_loads(steps, plan, piece, i);
    append_update(steps, plan, piece);
    append_update_store(steps, plan, has_master(plan), piece);
  }
}

/// The norm of all gradients: every axis over which they are spread.
void append_norm_reductions(std::vector<Step>& steps, const plan::Plan& plan) {
  const Bytes value = graph::size_of(graph::DataType::fp32);
  const auto sum = [&](plan::Axis axis) {
    steps.push_back(collective_step(axis, graph::CollectiveKind::all_reduce, value,
                                    plan::StepPhase::optimizer));
  };
  for (const plan::Axis axis : plan::norm_axes(plan)) {
    sum(axis);
  }
}

/// Gradients from the accumulation buffer to their norm over all ranks.
void append_norm(std::vector<Step>& steps, const plan::Plan& plan, std::int64_t local) {
  const Bytes stored = graph::size_of(plan.grad_type);
  const Bytes read = optimizer_gradient(plan);
  if (stored < read && graph::size_of(plan.compute_type) < read) {
    steps.push_back(optimizer_step("gradients_to_fp32", (stored + read) * local));
  }
  if (plan.compute_type == graph::DataType::fp16) {
    steps.push_back(optimizer_step("unscale_gradients", 2 * read * local));
  }
  steps.push_back(optimizer_step("gradient_norm", read * local));
  append_norm_reductions(steps, plan);
}

void append_clear(std::vector<Step>& steps, const plan::Plan& plan, const OptimizerShare& share) {
  if (plan::gradients_come_and_go(plan)) {
    return;
  }
  const std::int64_t cleared = plan.zero >= 2 ? share.local : share.whole;
  steps.push_back(optimizer_step("clear_gradients", graph::size_of(plan.grad_type) * cleared));
}

void append_update_gathers(std::vector<Step>& steps, const Draft& draft, const Context& context,
                           const RoleDraft& role) {
  for (const plan::Owner owner : {plan::Owner::dense, plan::Owner::expert}) {
    const Bytes parameters = role_parameter_bytes(draft, context, role, owner);
    const auto hop = plan::update_hop(context.plan, owner);
    if (hop && parameters > Bytes(0)) {
      steps.push_back(collective_step(hop->axis, graph::CollectiveKind::all_gather,
                                      parameters / hop->divisor, plan::StepPhase::optimizer));
    }
  }
}

}  // namespace

std::vector<graph::Operator> update_kernels(const plan::Plan& plan, const OptimizerShare& share) {
  std::vector<Step> steps;
  append_norm(steps, plan, share.local);
  if (plan.offload_optimizer == plan::Offload::none) {
    append_update(steps, plan, share);
  }
  append_clear(steps, plan, share);
  std::vector<graph::Operator> kernels;
  for (const Step& step : steps) {
    kernels.insert(kernels.end(), step.node.operators.begin(), step.node.operators.end());
  }
  return kernels;
}

void passes::embedding(Draft& draft, const Context& context) {
  const plan::Plan& plan = context.plan;
  const bool frozen = plan.lora_rank > 0;
  if (!context.model.tied_embedding || plan::ends_meet(plan) || frozen) {
    return;
  }
  std::int64_t table = 0;
  for (const zoo::ModelOperator& op : draft.operators[plan::kHeadBlock]) {
    table += plan::weight_elements(op);
  }
  for (RoleDraft* role : {&draft.roles.front(), &draft.roles.back()}) {
    role->finish.push_back(collective_step(plan::Axis::embedding, graph::CollectiveKind::all_reduce,
                                           graph::size_of(plan.grad_reduce_type) * table,
                                           plan::StepPhase::optimizer));
  }
}

void passes::optimizer(Draft& draft, const Context& context) {
  const plan::Plan& plan = context.plan;
  for (RoleDraft& role : draft.roles) {
    const OptimizerShare share = share_of(draft, context, role);
    std::vector<Step>& steps = role.finish;
    append_norm(steps, plan, share.local);
    if (plan.offload_optimizer == plan::Offload::none) {
      append_update(steps, plan, share);
    } else if (plan.offload_optimizer == plan::Offload::remote) {
      append_streamed_update(steps, plan, share);
    } else {
      append_host_update(steps, plan, share);
    }
    append_update_gathers(steps, draft, context, role);
    if (plan.offload_params == plan::Offload::none) {
      append_clear(steps, plan, share);
    }
  }
}

}  // namespace orrery::parallel
