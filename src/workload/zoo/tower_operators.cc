// SPDX-License-Identifier: Apache-2.0
/// MLPs of a recommendation model (Naumov et al. 2019, DLRM): on every rank whole.
#include <string>

#include "workload/zoo/builder.h"

namespace orrery::zoo {
namespace {

/// Products of all pairs of `interacting` vectors of width H, batched over the samples: X X^T.
/// Backward computes one product of the same size with each operand.
ModelOperator interaction(const Shapes& shapes) {
  const std::int64_t vectors = shapes.kind.interacting;
  ModelOperator op;
  op.name = "interaction_gemm";
  op.role = Role::interaction;
  op.kind = graph::OperatorKind::gemm;
  op.gemm = {.batch = shapes.tokens, .m = vectors, .n = vectors, .k = shapes.model.hidden};
  op.split = Split::sequence;
  op.forward_flops = op.model_flops = graph::flops_of(op.gemm);
  op.backward_flops = 2 * op.forward_flops;
  op.forward_bytes = shapes.wide(2 * vectors * shapes.model.hidden + vectors * vectors);
  op.backward_kernels = 0;
  op.saved = shapes.wide(vectors * shapes.model.hidden);
  return op;
}

}  // namespace

void append_tower(Operators& operators, const Shapes& shapes) {
  if (shapes.kind.interacting > 0) {
    operators.push_back(interaction(shapes));
  }
  const std::size_t first = operators.size();
  const std::vector<std::int64_t>& widths = shapes.kind.widths;
  for (std::size_t i = 1; i < widths.size(); ++i) {
    operators.push_back(weight_gemm("fc" + std::to_string(i) + "_gemm", Role::tower_matrix, shapes,
                                    widths[i], widths[i - 1], GemmSplit::none));
    operators.back().parameters += widths[i];
    const Bytes x = shapes.wide(widths[i]);
    operators.push_back(streaming("bias_relu_" + std::to_string(i), Role::tower_activation,
                                  graph::OperatorKind::elementwise, Split::sequence,
                                  {2 * x, 1, 4 * x, 2}));
    operators.back().saved = i + 1 < widths.size() ? Bytes(0) : x;  // else by the next matrix
  }
  mark(operators, first, Branch::mlp);
}

}  // namespace orrery::zoo
