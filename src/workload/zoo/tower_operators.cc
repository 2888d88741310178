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
  op.forward_flops = op.model_flops = graph::flops_of(op.gemm);
  op.backward_flops = 2 * op.forward_flops;
  op.forward_bytes = shapes.wide(2 * vectors * shapes.model.hidden + vectors * vectors);
  op.backward_kernels = 0;
  return op;
}

}  // namespace

int append_tower(GraphBuilder& block, const Shapes& shapes) {
  const std::vector<std::int64_t>& widths = shapes.kind.widths;
  const Form form{shapes.rows(), {Dim::none, widths.front()}};
  int x = -1;
  if (const std::int64_t vectors = shapes.kind.interacting; vectors > 0) {
    const int embedded = block.input({shapes.rows(), {Dim::none, vectors}, shapes.width()});
    const int products =
        block.activation({shapes.rows(), {Dim::none, vectors}, {Dim::none, vectors}});
    block.add(interaction(shapes),
              {.reads = {embedded}, .writes = {products}, .saves = {embedded}});
    x = block.view(products, form);  // one of each pair, beside the dense features
  } else {
    x = block.input(form);
  }
  const std::size_t first = block.operators().size();
  for (std::size_t i = 1; i < widths.size(); ++i) {
    x = block.product({.name = "fc" + std::to_string(i) + "_gemm",
                       .role = Role::tower_matrix,
                       .out = {Dim::none, widths[i]},
                       .further = widths[i]},
                      {x});
    const Bytes size = shapes.wide(widths[i]);
    const int active = block.like(x);
    block.add(streaming("bias_relu_" + std::to_string(i), Role::tower_activation,
                        graph::OperatorKind::elementwise, {2 * size, 1, 4 * size, 2}),
              {.reads = {x},
               .writes = {active},
               // before the last, the next matrix keeps it
               .saves = i + 1 < widths.size() ? TensorList() : TensorList{active}});
    x = active;
  }
  mark(block.operators(), first, Branch::mlp);
  return x;
}

}  // namespace orrery::zoo
