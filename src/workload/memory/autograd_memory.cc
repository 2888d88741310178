// SPDX-License-Identifier: Apache-2.0
#include "workload/memory/autograd_memory.h"

#include <set>
#include <utility>

#include "workload/plan/lora.h"
#include "workload/plan/modules.h"

namespace orrery::footprint {
namespace {

/// cuBLAS takes so much for each thread that calls it, on devices of compute capability 9.0.
constexpr Bytes kCublasWorkspace(std::int64_t{32} * 1024 * 1024);

Bytes norm_bytes(const zoo::Model& model, const plan::Plan& plan, const zoo::ModelOperator& op,
                 bool later) {
  const Bytes input = op.saved;
  const std::int64_t width = graph::size_of(plan.compute_type).value() * op.gemm.k;
  const std::int64_t statistics = model.norm == zoo::NormKind::layer_norm ? 2 : 1;
  const Bytes rows = Bytes(width > 0 ? input.value() / width : 0);
  const Bytes kept = rows * statistics * graph::size_of(graph::DataType::fp32).value();
  if (plan::writes_out_norms(model, plan)) {
    return kept + input * (plan::is_trained(op) ? 3 : 2);
  }
  const bool rebuilt = later && plan.fused_kernels;  // by the compiled block, from its bf16 terms
  return kept + input * (plan.autocast && !rebuilt ? 2 : 1);
}

}  // namespace

Bytes kept_by_autograd(const zoo::Model& model, const plan::Plan& plan,
                       const zoo::ModelOperator& op, Bytes saved, bool later_norm) {
  if (plan.autograd == plan::Autograd::transformer_engine) {
    const bool exchanged = plan.cp > 1 && op.kind == graph::OperatorKind::attention &&
                           plan.cp_exchange == plan::ContextExchange::a2a;
    return exchanged ? saved + op.query : saved;
  }
  if (!plan::is_pytorch(plan)) {
    return saved;
  }
  const bool titan = plan::is_torchtitan(plan);
  switch (op.role) {
    case graph::OperatorRole::rotate:  // torchtitan's with a key for every head
      return titan ? saved + op.forward_bytes / plan::titan_rotation_passes(model) * 2 *
                                 model.heads / (model.heads + model.kv_heads)
                   : saved + op.forward_bytes / (plan.fused_kernels ? 2 : 10);
    case graph::OperatorRole::split_qkv: {
      const bool rotated = model.position == zoo::PositionKind::rotary;
      const bool values_alone = plan.autograd == plan::Autograd::hugging_face || titan;
      const std::int64_t values = titan ? model.heads : model.kv_heads;
      return values_alone && rotated ? saved * values / (model.heads + 2 * model.kv_heads) : saved;
    }
    default:
      return op.kind == graph::OperatorKind::norm ? norm_bytes(model, plan, op, later_norm) : saved;
  }
}

Bytes kept_beside_every_other(const zoo::Model& model, const plan::Plan& plan,
                              const zoo::ModelOperator& op, Bytes kept, bool later_norm) {
  switch (op.role) {
    case graph::OperatorRole::norm_branch:
      return later_norm ? Bytes(0) : op.saved;
    case graph::OperatorRole::split_qkv:
      return op.saved * (model.heads + model.kv_heads) / (model.heads + 2 * model.kv_heads);
    case graph::OperatorRole::activation:
      return op.forward_bytes / (plan.fused_kernels ? 3 : 5);  // fc1's gate alone
    case graph::OperatorRole::project_qkv:
    case graph::OperatorRole::up:
    case graph::OperatorRole::down:
    case graph::OperatorRole::rotate:
      return Bytes(0);
    default:
      return kept;
  }
}

Bytes library_workspaces(const plan::Plan& plan, const std::vector<zoo::ModelGraph>& blocks) {
  if (plan::is_pytorch(plan)) {
    return 2 * kCublasWorkspace;
  }
  if (plan.autograd != plan::Autograd::transformer_engine) {
    return Bytes(0);
  }
  std::set<std::pair<std::int64_t, std::int64_t>> shapes;
  Bytes dummies{0};
  for (std::size_t kind = plan::kFirstLayerBlock; kind < blocks.size(); ++kind) {
    for (const zoo::ModelOperator& op : blocks[kind].operators) {
      const std::pair shape{op.gemm.n, op.gemm.k};
      const bool linear = op.has_weight && !op.expert && plan::is_trained(op);
      if (linear && shapes.insert(shape).second) {
        dummies += graph::bytes_of(plan.compute_type, op.gemm.n * op.gemm.k);
      }
    }
  }
  return 3 * kCublasWorkspace + dummies;
}

}  // namespace orrery::footprint
