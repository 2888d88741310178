// SPDX-License-Identifier: Apache-2.0
#include "workload/memory/autograd_memory.h"

#include <set>
#include <tuple>

#include "workload/plan/lora.h"

namespace orrery::footprint {
namespace {

/// Of cuBLAS, for each thread that calls it: its default on devices of compute capability 9.0.
constexpr Bytes kCublasWorkspace(32 * 1024 * 1024);

Bytes norm_bytes(const zoo::Model& model, const plan::Plan& plan, const zoo::ModelOperator& op,
                 bool later) {
  const Bytes input = op.saved;
  const std::int64_t width = graph::size_of(plan.compute_type).value() * op.gemm.k;
  const std::int64_t statistics = model.norm == zoo::NormKind::layer_norm ? 2 : 1;
  const Bytes rows = Bytes(width > 0 ? input.value() / width : 0);
  const Bytes kept = rows * statistics * graph::size_of(graph::DataType::fp32).value();
  if (plan.autograd == plan::Autograd::hugging_face) {
    return kept + input * (plan::is_trained(op) ? 3 : 2);
  }
  const bool rebuilt = later && plan.fused_kernels;  // by the compiled block, from its bf16 terms
  return kept + input * (plan.autocast && !rebuilt ? 2 : 1);
}

}  // namespace

Bytes kept_by_autograd(const zoo::Model& model, const plan::Plan& plan,
                       const zoo::ModelOperator& op, Bytes saved, bool later_norm) {
  if (!plan::is_pytorch(plan)) {
    return saved;
  }
  switch (op.role) {
    case graph::OperatorRole::rotate:
      return saved + op.forward_bytes / (plan.fused_kernels ? 2 : 10);
    case graph::OperatorRole::split_qkv: {
      const bool rotated = model.position == zoo::PositionKind::rotary;
      const bool values_alone = plan.autograd == plan::Autograd::hugging_face && rotated;
      return values_alone ? saved * model.kv_heads / (model.heads + 2 * model.kv_heads) : saved;
    }
    default:
      return op.kind == graph::OperatorKind::norm ? norm_bytes(model, plan, op, later_norm) : saved;
  }
}

Bytes library_workspaces(const plan::Plan& plan,
                         const std::vector<std::vector<zoo::ModelOperator>>& blocks) {
  if (plan::is_pytorch(plan)) {
    return 2 * kCublasWorkspace;
  }
  if (plan.autograd != plan::Autograd::transformer_engine) {
    return Bytes(0);
  }
  std::set<std::tuple<std::int64_t, std::int64_t, std::int64_t>> shapes;
  Bytes dummies{0};
  for (std::size_t kind = plan::kFirstLayerBlock; kind < blocks.size(); ++kind) {
    for (const zoo::ModelOperator& op : blocks[kind]) {
      const std::tuple shape{op.expert ? op.gemm.batch : 1, op.gemm.n, op.gemm.k};
      if (op.has_weight && plan::is_trained(op) && shapes.insert(shape).second) {
        dummies += graph::bytes_of(plan.compute_type, std::get<0>(shape) * op.gemm.n * op.gemm.k);
      }
    }
  }
  return 3 * kCublasWorkspace + dummies;
}

}  // namespace orrery::footprint
