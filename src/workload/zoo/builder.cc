// SPDX-License-Identifier: Apache-2.0
#include "workload/zoo/builder.h"

#include <cassert>
#include <utility>

namespace orrery::zoo {

Shapes::Shapes(const Model& m, const ShapeOptions& o)
    : model(m),
      options(o),
      tokens(o.microbatch * (o.sequence / o.context)),
      query(m.heads * m.head_dim),
      key_value(m.kv_heads * m.head_dim),
      vocab(o.padded_vocab > 0 ? o.padded_vocab : m.vocab),
      element(size_of(o.type)),
      hidden_tensor(tensor(tokens, m.hidden)),
      hidden_mask(Bytes(1) * tokens * m.hidden),
      query_tensor(tensor(tokens, query)),
      qkv_tensor(tensor(tokens, query + 2 * key_value)),
      ffn_tensor(tensor(tokens, m.ffn)) {
  assert(o.microbatch >= 1 && o.sequence >= 1 && "a microbatch holds at least one token");
}

ModelOperator streaming(std::string name, OperatorKind kind, Split split, const Traffic& traffic) {
  ModelOperator op;
  op.name = std::move(name);
  op.kind = kind;
  op.split = split;
  op.forward_bytes = traffic.forward;
  op.forward_kernels = traffic.forward_kernels;
  op.backward_bytes = traffic.backward;
  op.backward_kernels = traffic.backward_kernels;
  return op;
}

ModelOperator weight_gemm(std::string name, const Shapes& shapes, std::int64_t out, std::int64_t in,
                          GemmSplit split) {
  assert((split == GemmSplit::column || split == GemmSplit::row) && "a weight is split one way");
  const bool enters = split == GemmSplit::column;
  ModelOperator op;
  op.name = std::move(name);
  op.kind = OperatorKind::gemm;
  op.gemm = {.batch = 1, .m = shapes.tokens, .n = out, .k = in};
  op.gemm_split = split;
  op.split = enters ? Split::sequence : Split::tensor;
  op.boundary = enters ? TensorBoundary::enter : TensorBoundary::leave;
  op.forward_flops = op.model_flops = flops_of(op.gemm);
  op.backward_flops = 2 * op.forward_flops;
  op.forward_bytes =
      shapes.tensor(shapes.tokens, in) + shapes.tensor(in, out) + shapes.tensor(shapes.tokens, out);
  op.backward_kernels = 0;
  op.has_weight = true;
  op.saved = shapes.tensor(shapes.tokens, in);
  op.parameters = in * out;
  return op;
}

ModelOperator norm(std::string name, const Shapes& shapes) {
  const Bytes x = shapes.hidden_tensor;
  // Forward reads x and writes y. Backward: partial sums of the scale's (and shift's) gradient read
  // x and dy, their reduction is small; dx reads x and dy and writes; then dx is added to the
  // gradient of the residual branch (reads two, writes one). Statistics (two values per row) are
  // left out.
  ModelOperator op = streaming(
      std::move(name), OperatorKind::norm, Split::sequence,
      {.forward = 2 * x, .forward_kernels = 1, .backward = (2 + 3 + 3) * x, .backward_kernels = 4});
  op.saved = x;
  op.parameters = shapes.model.hidden * (shapes.model.norm == NormKind::layer_norm ? 2 : 1);
  return op;
}

}  // namespace orrery::zoo
