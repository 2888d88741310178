// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cassert>

#include "workload/zoo/builder.h"

namespace orrery::zoo {
namespace {

using graph::ModelTensor;
using Use = ModelTensor::Use;

bool is_product(const ModelOperator& op) {
  return op.kind == graph::OperatorKind::gemm || op.kind == graph::OperatorKind::grouped_gemm;
}

std::int64_t elements(const ModelTensor& tensor) {
  return tensor.rows() * tensor.columns();
}

}  // namespace

int GraphBuilder::push(ModelTensor tensor, Form extents) {
  assert(extents.size() <= ModelTensor::kMost);
  std::copy(extents.begin(), extents.end(), tensor.extents.begin());
  graph_.tensors.push_back(tensor);
  return static_cast<int>(graph_.tensors.size()) - 1;
}

int GraphBuilder::activation(Form extents) {
  return activation(extents, type_);
}

int GraphBuilder::activation(Form extents, graph::DataType type) {
  return push({.type = type}, extents);
}

int GraphBuilder::like(int number) {
  ModelTensor copy = tensor(number);
  copy.use = Use::activation;
  copy.view_of = -1;
  return push(copy, {});
}

int GraphBuilder::input(Form extents) {
  return push({.use = Use::input, .type = type_}, extents);
}

int GraphBuilder::buffer(Form extents, graph::DataType type) {
  return push({.use = Use::buffer, .type = type}, extents);
}

int GraphBuilder::parameter(Form extents, bool shared) {
  return push({.use = Use::parameter, .type = type_, .shared = shared}, extents);
}

int GraphBuilder::view(int of, Form extents) {
  ModelTensor part = tensor(of);
  part.view_of = of;
  part.extents = {};
  return push(part, extents);
}

ModelOperator& GraphBuilder::add(ModelOperator op, Edges edges, std::int64_t parameters) {
  if (parameters > 0) {
    edges.reads.add(parameter({{Dim::none, parameters}}));
  }
  op.reads = edges.reads;
  op.writes = edges.writes;
  op.saves = edges.saves;
  op.parameters = 0;
  for (const int read : op.reads) {
    const ModelTensor& one = tensor(read);
    op.parameters += one.use == Use::parameter && !one.shared ? elements(one) : 0;
  }
  for (const int kept : op.saves) {
    op.saved += tensor(kept).bytes();
  }
  const Divided parts = divided(op);
  op.gemm_split = gemm_split(op, parts);
  op.split = split(op, parts);
  return graph_.operators.emplace_back(std::move(op));
}

int GraphBuilder::map(ModelOperator op, TensorList reads, TensorList saves,
                      std::int64_t parameters) {
  const int result = like(reads.front());
  add(std::move(op), {.reads = reads, .writes = {result}, .saves = saves}, parameters);
  return result;
}

int GraphBuilder::product(Matrix matrix, TensorList inputs) {
  const Extent rows = tensor(inputs.front()).extents.front();
  Extent in{tensor(inputs.front()).extents[1].dim, 0};
  Bytes traffic{0};
  for (const int input : inputs) {
    in.size += tensor(input).columns();
    traffic += tensor(input).bytes();
  }
  const int weight = parameter({in, matrix.out}, matrix.shared);
  const int result = activation({rows, matrix.out});
  ModelOperator op;
  op.name = std::move(matrix.name);
  op.role = matrix.role;
  op.kind = graph::OperatorKind::gemm;
  op.gemm = {.batch = 1, .m = rows.size, .n = matrix.out.size, .k = in.size};
  op.forward_flops = op.model_flops = graph::flops_of(op.gemm);
  op.backward_flops = 2 * op.forward_flops;
  op.forward_bytes = traffic + tensor(weight).bytes() + tensor(result).bytes();
  op.backward_kernels = 0;
  op.has_weight = true;
  Edges edges{.reads = inputs, .writes = {result}};
  edges.saves = matrix.keeps_input ? inputs : TensorList();
  edges.reads.add(weight);
  add(std::move(op), edges, matrix.further);
  return result;
}

TensorList GraphBuilder::products(Matrix matrix, int input, Form widths) {
  const int result = product(std::move(matrix), {input});
  TensorList parts;
  for (const Extent& width : widths) {
    parts.add(view(result, {tensor(result).extents.front(), width}));
  }
  return parts;
}

GraphBuilder::Divided GraphBuilder::divided(const ModelOperator& op) const {
  Divided parts;
  for (const int read : op.reads) {
    const ModelTensor& one = tensor(read);
    (one.use == Use::parameter ? parts.parameter : parts.input) |= one.is_divided();
  }
  for (const int write : op.writes) {
    parts.result |= tensor(write).is_divided();
  }
  return parts;
}

GemmSplit GraphBuilder::gemm_split(const ModelOperator& op, const Divided& parts) const {
  if (op.kind == graph::OperatorKind::embedding) {
    return parts.parameter && !parts.result ? GemmSplit::row : GemmSplit::none;
  }
  const bool multiplies = is_product(op) || op.kind == graph::OperatorKind::attention ||
                          op.kind == graph::OperatorKind::scan;
  if (!multiplies || !(parts.input || parts.result)) {
    return GemmSplit::none;
  }
  return !parts.input ? GemmSplit::column : !parts.result ? GemmSplit::row : GemmSplit::heads;
}

Split GraphBuilder::split(const ModelOperator& op, const Divided& parts) const {
  if (op.expert || parts.input || (parts.result && !is_product(op))) {
    return Split::tensor;
  }
  if (is_product(op)) {
    return Split::sequence;
  }
  const bool handles_tokens = std::ranges::any_of(op.writes, [&](int write) {
    const Dim rows = tensor(write).extents.front().dim;
    return rows == Dim::tokens || rows == Dim::keys || rows == Dim::rows;
  });
  if (op.writes.empty()) {
    return Split::tensor;  // of a table's gradient
  }
  return parts.parameter || !handles_tokens ? Split::none : Split::sequence;
}

ModelGraph GraphBuilder::finish(int output) {
  graph_.output = output;
  return std::move(graph_);
}

}  // namespace orrery::zoo
