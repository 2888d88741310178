// SPDX-License-Identifier: Apache-2.0
#include "workload/zoo/builder.h"

#include <cassert>
#include <utility>

namespace orrery::zoo {

Shapes::Shapes(const Model& m, const ShapeOptions& o, LayerKind k)
    : model(m),
      options(o),
      kind(std::move(k)),
      tokens(o.microbatch * (o.sequence / o.context)),
      queries(o.sequence / o.context),
      head_dim(head_dim_of(m, kind)),
      value_dim(value_dim_of(m, kind)),
      query(m.heads * head_dim),
      key(kv_heads_of(m, kind) * head_dim),
      value(kind.mixer == MixerKind::compressed_attention ? 0 : kv_heads_of(m, kind) * value_dim),
      context(m.heads * value_dim),
      ffn(kind.ffn > 0 ? kind.ffn : m.ffn),
      vocab(o.padded_vocab > 0 ? o.padded_vocab : m.vocab),
      element(graph::size_of(o.type)),
      hidden_tensor(tensor(tokens, m.hidden)),
      hidden_mask(Bytes(1) * tokens * m.hidden) {
  assert(o.microbatch >= 1 && o.sequence >= 1 && "a microbatch holds at least one token");
}

graph::TokenRoute token_route(const Model& model) {
  return {model.top_k, model.expert_groups, model.chosen_groups};
}

void mark(Operators& operators, std::size_t first, Branch branch) {
  for (std::size_t i = first; i < operators.size(); ++i) {
    operators[i].branch = operators[i].branch == Branch::none ? branch : operators[i].branch;
  }
}

LayerKind kind_of(const Model& model, int kind) {
  assert(kind >= 0 && "an index of layer_kinds");
  return model.kinds.empty() ? LayerKind{} : model.kinds.at(static_cast<std::size_t>(kind));
}

std::vector<std::int64_t> layers_by_kind(const Model& model) {
  std::vector<std::int64_t> counts(layer_kinds(model).size(), 0);
  const auto period = static_cast<std::int64_t>(model.layout.size());
  if (period == 0) {
    counts[0] = model.layers;
    return counts;
  }
  for (std::int64_t i = 0; i < period; ++i) {
    const auto kind = static_cast<std::size_t>(model.layout[static_cast<std::size_t>(i)]);
    counts[kind] += model.layers / period + (i < model.layers % period ? 1 : 0);
  }
  return counts;
}

ModelOperator streaming(std::string name, Role role, graph::OperatorKind kind,
                        const Traffic& traffic) {
  ModelOperator op;
  op.name = std::move(name);
  op.role = role;
  op.kind = kind;
  op.forward_bytes = traffic.forward;
  op.forward_kernels = traffic.forward_kernels;
  op.backward_bytes = traffic.backward;
  op.backward_kernels = traffic.backward_kernels;
  return op;
}

std::int64_t norm_parameters(const Model& model, std::int64_t width) {
  if (!model.norm_scale) {
    return 0;
  }
  return width * (model.norm == NormKind::layer_norm ? 2 : 1);
}

int append_norm(GraphBuilder& block, const Shapes& shapes, std::string name, Role role, int x) {
  // The gradient of the residual branch is added to dx (reads two, writes one).
  const std::int64_t width = shapes.model.hidden;
  ModelOperator op = norm(std::move(name), role, shapes, width);
  op.backward_bytes += 3 * shapes.hidden_tensor;
  ++op.backward_kernels;
  return block.map(std::move(op), {x}, {x}, norm_parameters(shapes.model, width));
}

int append_norm(GraphBuilder& block, const Shapes& shapes, std::string name, Role role, int x,
                std::int64_t width) {
  return block.map(norm(std::move(name), role, shapes, width), {x}, {x},
                   norm_parameters(shapes.model, width));
}

ModelOperator norm(std::string name, Role role, const Shapes& shapes, std::int64_t width) {
  const Bytes x = shapes.wide(width);
  // Forward reads x and writes y. Backward: partial sums of the scale's (and shift's) gradient read
  // x and dy, their reduction is small; dx reads x and dy and writes. Statistics (two values per
  // row) are left out.
  ModelOperator op = streaming(
      std::move(name), role, graph::OperatorKind::norm,
      {.forward = 2 * x, .forward_kernels = 1, .backward = (2 + 3) * x, .backward_kernels = 3});
  op.gemm.k = width;  // the row length, on which a norm's bandwidth depends
  return op;
}

}  // namespace orrery::zoo
