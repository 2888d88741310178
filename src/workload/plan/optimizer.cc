// SPDX-License-Identifier: Apache-2.0
#include "workload/plan/optimizer.h"

#include "workload/plan/lora.h"
#include "workload/plan/shard.h"

namespace orrery::plan {
namespace {

constexpr std::int64_t kScaleBlock = 256;  ///< elements of an 8-bit moment with one fp32 scale
constexpr std::int64_t kSteps = 5;         ///< of Newton and Schulz

std::int64_t orthogonal_flops(std::int64_t rows, std::int64_t columns) {
  const std::int64_t m = std::min(rows, columns);
  const std::int64_t n = std::max(rows, columns);
  return kSteps * (4 * m * m * n + 2 * m * m * m);
}

}  // namespace

Matrices matrices_of(const zoo::ModelOperator& op, BlockKind kind) {
  const std::int64_t elements = weight_elements(op);
  if (!is_trained(op)) {
    return {};
  }
  if (elements == 0) {
    return {.elements = kind == kEmbeddingBlock ? op.parameters : 0};
  }
  Matrices made{.elements = elements, .factors = op.gemm.batch * (op.gemm.n + op.gemm.k)};
  if (kind >= kFirstLayerBlock) {
    made.in_layers = elements;
    made.one_flops = orthogonal_flops(op.gemm.n, op.gemm.k);
    made.flops = op.gemm.batch * made.one_flops;
  }
  return made;
}

Bytes moment_bytes(const Plan& plan, std::int64_t parameters, const Matrices& matrices) {
  const auto of = [&](std::int64_t count) { return graph::bytes_of(plan.moment_type, count); };
  const Bytes full = graph::size_of(graph::DataType::fp32);
  switch (plan.optimizer) {
    case Optimizer::adam:
    case Optimizer::adam_foreach:
      break;
    case Optimizer::adamw_8bit:
      return 2 * (Bytes(parameters) + full * ((parameters + kScaleBlock - 1) / kScaleBlock));
    case Optimizer::lion:
    case Optimizer::sgd:
      return of(parameters);
    case Optimizer::adafactor:
      return full * (matrices.factors + std::max<std::int64_t>(0, parameters - matrices.elements));
    case Optimizer::muon:
      return of(matrices.in_layers) +
             2 * of(std::max<std::int64_t>(0, parameters - matrices.in_layers));
  }
  return 2 * of(parameters);
}

Bytes update_bytes(const Plan& plan, Bytes gradient, std::int64_t parameters,
                   const Matrices& matrices) {
  const Bytes states = moment_bytes(plan, parameters, matrices);
  if (plan.optimizer == Optimizer::adam_foreach) {
    return (2 * gradient + 4 * graph::size_of(plan.master_type)) * parameters + 7 * states;
  }
  const std::int64_t reads = plan.optimizer == Optimizer::adafactor ? 3 : 1;
  // Muon writes the update of a matrix in bf16 and reads it again.
  const Bytes between =
      plan.optimizer == Optimizer::muon ? Bytes(4) * matrices.in_layers : Bytes(0);
  return (reads * gradient + 2 * graph::size_of(plan.master_type)) * parameters + 2 * states +
         between;
}

}  // namespace orrery::plan
