// SPDX-License-Identifier: Apache-2.0
#include "workload/plan/lora.h"

#include <algorithm>
#include <string>
#include <utility>

#include "workload/plan/lora_targets.h"
#include "workload/plan/plan_lists.h"
#include "workload/plan/quantize.h"
#include "workload/plan/shard.h"

namespace orrery::plan {
namespace {

using Role = graph::OperatorRole;

/// peft computes adapters in fp32 beside weights of 16 bits (autocast_adapter_dtype).
bool in_single(const Plan& plan) {
  return plan.autograd == Autograd::hugging_face &&
         graph::bits_of(plan.compute_type) < graph::bits_of(graph::DataType::fp32);
}

/// Returns one GEMM of an adapter; fields that neither of them has are empty.
zoo::ModelOperator adapter_gemm(const zoo::ModelOperator& base, Role role,
                                const graph::GemmShape& shape) {
  zoo::ModelOperator op;
  op.name = base.name + (role == Role::adapter_down ? "_lora_a" : "_lora_b");
  op.role = role;
  op.branch = base.branch;
  op.kind = base.kind;
  op.gemm = shape;
  op.forward_flops = graph::flops_of(shape);
  op.backward_flops = 2 * op.forward_flops;
  op.backward_kernels = 0;
  op.has_weight = true;
  op.weights = zoo::Weights::adapter;
  op.expert = base.expert;
  op.experts = base.experts;
  op.parameters = shape.batch * shape.k * shape.n;
  return op;
}

/// Gives `first` the frozen GEMM's entry into the split part.
void take_entry(zoo::ModelOperator& base, zoo::ModelOperator& first) {
  first.all_tokens = base.gemm_split == zoo::GemmSplit::column && !base.expert;
  first.routed += std::exchange(base.routed, Bytes(0));
}

/// X A: in front of the frozen GEMM, with its input.
zoo::ModelOperator reduction_of(zoo::ModelOperator& base, const Plan& plan, int matrices) {
  graph::GemmShape shape = base.gemm;
  shape.n = plan.lora_rank * matrices;
  zoo::ModelOperator op = adapter_gemm(base, Role::adapter_down, shape);
  op.forward_kernels = matrices;
  op.gemm_split =
      base.gemm_split == zoo::GemmSplit::row ? zoo::GemmSplit::row : zoo::GemmSplit::none;
  op.split = base.split;
  op.saved = base.saved;
  op.saves = base.saves;
  take_entry(base, op);
  return op;
}

/// (X A) B.
zoo::ModelOperator expansion_of(const zoo::ModelOperator& base, const Plan& plan, int matrices) {
  graph::GemmShape shape = base.gemm;
  shape.k = plan.lora_rank;
  zoo::ModelOperator op = adapter_gemm(base, Role::adapter_up, shape);
  op.gemm_split =
      base.gemm_split == zoo::GemmSplit::column ? zoo::GemmSplit::column : zoo::GemmSplit::none;
  op.split = base.gemm_split == zoo::GemmSplit::none ? base.split : zoo::Split::none;
  op.saved = graph::size_of(plan.compute_type) * shape.batch * shape.m * (shape.k * matrices);
  op.forward_kernels = matrices;
  return op;
}

zoo::ModelOperator streaming(const zoo::ModelOperator& base, const char* name, Role role,
                             zoo::GemmSplit divides) {
  zoo::ModelOperator op;
  op.name = base.name + name;
  op.role = role;
  op.branch = base.branch;
  op.split = base.gemm_split == divides                ? zoo::Split::tensor
             : base.gemm_split == zoo::GemmSplit::none ? base.split
                                                       : zoo::Split::none;
  op.expert = base.expert;
  op.experts = base.experts;
  op.weights = zoo::Weights::frozen;
  return op;
}

Bytes input_of(const zoo::ModelOperator& base, const Plan& plan) {
  return graph::size_of(plan.compute_type) * base.gemm.batch * base.gemm.m * base.gemm.k;
}

/// Sum of the input's gradients through W and through A.
zoo::ModelOperator join_of(const zoo::ModelOperator& base, const Plan& plan, int matrices) {
  zoo::ModelOperator op = streaming(base, "_lora_join", Role::adapter_join, zoo::GemmSplit::row);
  op.forward_kernels = 0;
  op.backward_kernels = matrices;
  op.backward_bytes = 3 * input_of(base, plan) * matrices;
  return op;
}

/// Returns the input in fp32 for each matrix, and its gradient in the compute type again.
zoo::ModelOperator cast_of(zoo::ModelOperator& base, const Plan& plan, int matrices) {
  zoo::ModelOperator op = streaming(base, "_lora_cast", Role::adapter_join, zoo::GemmSplit::row);
  const Bytes single =
      graph::size_of(graph::DataType::fp32) * base.gemm.batch * base.gemm.m * base.gemm.k;
  op.forward_kernels = op.backward_kernels = matrices;
  op.forward_bytes = op.backward_bytes = (input_of(base, plan) + single) * matrices;
  take_entry(base, op);
  return op;
}

/// A share of the input is dropped and the rest is scaled; a byte an element says which.
zoo::ModelOperator dropout_of(zoo::ModelOperator& base, Bytes input, Bytes mask, int matrices) {
  zoo::ModelOperator op = streaming(base, "_lora_dropout", Role::adapter_join, zoo::GemmSplit::row);
  op.forward_kernels = op.backward_kernels = matrices;
  op.forward_bytes = op.backward_bytes = 2 * input + mask;
  op.saved = mask;
  take_entry(base, op);
  return op;
}

zoo::ModelOperator sum_of(const zoo::ModelOperator& base, const Plan& plan, int matrices) {
  zoo::ModelOperator op = streaming(base, "_lora_sum", Role::adapter_sum, zoo::GemmSplit::column);
  const std::int64_t elements = base.gemm.batch * base.gemm.m * base.gemm.n;
  const Bytes result = graph::size_of(plan.compute_type) * elements;
  if (!in_single(plan)) {
    op.forward_kernels = 2;
    op.forward_bytes = 5 * result;
    op.backward_bytes = 2 * result;
    return op;
  }
  // The product, the sum with W's result and its cast; the cast of dY, of that of W's result back
  // to its type (autograd's validate_outputs), and the product.
  const Bytes single = graph::size_of(graph::DataType::fp32) * elements;
  op.forward_kernels = 3 * matrices;
  op.backward_kernels = 3 * matrices;
  op.forward_bytes = 5 * single + 2 * result;
  op.backward_bytes = 4 * single + 2 * result;
  return op;
}

void keep_nothing(zoo::ModelOperator& op) {
  op.saved = Bytes(0);
  op.saves = {};
}

void freeze(zoo::ModelOperator& op, bool after_attention) {
  op.weights = zoo::Weights::frozen;
  if (op.has_weight && !after_attention) {
    keep_nothing(op);
  }
}

/// All of a gather's backward is the gradient of its table.
void drop_backward(zoo::ModelOperator& op) {
  op.backward_flops = Flops(0);
  op.backward_bytes = Bytes(0);
  op.backward_kernels = 0;
  keep_nothing(op);
}

int append(zoo::ModelGraph& block, graph::ModelTensor tensor) {
  block.tensors.push_back(tensor);
  return static_cast<int>(block.tensors.size()) - 1;
}

/// Returns how many matrices a product of the model is in the software that runs it.
int matrices_of(const zoo::ModelGraph& block, const std::vector<zoo::ModelOperator>& operators,
                const zoo::ModelOperator& op, const Plan& plan) {
  if (plan.autograd != Autograd::hugging_face) {
    return 1;
  }
  if (is_qkv(op)) {
    return 3;
  }
  const auto width = [&](int tensor) {
    return block.tensors[static_cast<std::size_t>(tensor)].extents[1].size;
  };
  const int result = op.writes.front();
  const bool gated = is_up(op) && std::ranges::any_of(operators, [&](const auto& other) {
                       return other.role == Role::activation && other.reads.front() == result &&
                              2 * width(other.writes.front()) == width(result);
                     });
  return gated ? 2 : 1;
}

/// Returns what the product reads beside its parameters.
graph::TensorList inputs_of(const zoo::ModelGraph& block, const zoo::ModelOperator& base) {
  graph::TensorList inputs;
  for (const int read : base.reads) {
    if (block.tensors[static_cast<std::size_t>(read)].use != graph::ModelTensor::Use::parameter) {
      inputs.add(read);
    }
  }
  return inputs;
}

/// Appends the operators of an adapter in front of its product, which reads what they make.
void append_adapter(zoo::ModelGraph& block, zoo::ModelOperator& base, const Plan& plan,
                    int matrices) {
  using graph::ModelTensor;
  const auto tensor = [&](int number) { return block.tensors[static_cast<std::size_t>(number)]; };
  const graph::TensorList inputs = inputs_of(block, base);
  const graph::Extent rank{graph::Dim::none, plan.lora_rank};
  const graph::Extent ranks{graph::Dim::none, plan.lora_rank * matrices};
  const graph::ModelTensor result = tensor(base.writes.front());
  const auto matrix = [&](graph::Extent in, graph::Extent out) {
    ModelTensor weight{.use = ModelTensor::Use::parameter, .type = result.type};
    weight.extents = {{{graph::Dim::experts, base.gemm.batch}, in, out}};
    return append(block, weight);
  };
  const graph::Extent width = tensor(inputs.front()).extents[1];
  const auto wide = [&](graph::DataType type) {
    return append(
        block,
        {.type = type, .extents = {{result.extents[0], {width.dim, base.gemm.k * matrices}, {}}}});
  };
  graph::TensorList entering = inputs;
  const auto enter = [&](zoo::ModelOperator op, const graph::TensorList& written) {
    op.reads = entering;
    op.writes = written;
    entering = {written.front()};
    block.operators.push_back(std::move(op));
  };
  if (in_single(plan)) {
    enter(cast_of(base, plan, matrices), {wide(graph::DataType::fp32)});
  }
  if (plan.lora_dropout > 0) {
    const int kept = wide(in_single(plan) ? graph::DataType::fp32 : result.type);
    const int mask = wide(graph::DataType::fp8);  // a byte an element
    enter(dropout_of(base, tensor(kept).bytes(), tensor(mask).bytes(), matrices), {kept, mask});
    block.operators.back().saves = {mask};
  }
  zoo::ModelOperator down = reduction_of(base, plan, matrices);
  down.reads = entering;
  if (in_single(plan) || plan.lora_dropout > 0) {
    down.saves = entering;
    down.saved = tensor(entering.front()).bytes();
  }
  down.reads.add(matrix({width.dim, base.gemm.k}, ranks));
  const int narrow =
      append(block, {.type = result.type, .extents = {{result.extents[0], ranks, {}}}});
  down.writes = {narrow};
  zoo::ModelOperator up = expansion_of(base, plan, matrices);
  up.reads = {narrow, matrix(rank, {result.extents[1].dim, base.gemm.n})};
  up.writes = {append(block, result)};
  up.saves = {narrow};
  zoo::ModelOperator sum = sum_of(base, plan, matrices);
  sum.reads = up.writes;
  sum.writes = {append(block, result)};
  base.reads.add(sum.writes.front());
  keep_nothing(base);
  block.operators.push_back(std::move(down));
  block.operators.push_back(join_of(base, plan, matrices));
  block.operators.push_back(std::move(up));
  block.operators.push_back(std::move(sum));
}

/// q.
double packed_element(const Plan& plan) {
  switch (plan.frozen_type) {
    case FrozenType::compute_type:
      return static_cast<double>(graph::bits_of(plan.compute_type)) / 8;
    case FrozenType::fp8:
      return plan.quantization == Quantization::none ? 1
                                                     : recipe_of(plan.quantization).element_bytes();
    case FrozenType::int8:
      return 1;
    case FrozenType::int4:
      return 0.5 + 2.0 / 64;
    case FrozenType::nf4:
      return 0.5 + (1 + 4.0 / 256) / 64;
  }
  return 1;
}

}  // namespace

bool is_trained(const zoo::ModelOperator& op) {
  return op.weights != zoo::Weights::frozen;
}

bool is_packed(const Plan& plan, const zoo::ModelOperator& op) {
  return plan.frozen_type != FrozenType::compute_type && op.has_weight && !is_trained(op) &&
         op.role != Role::router && op.role != Role::logits;
}

Bytes packed_bytes(const Plan& plan, std::int64_t elements) {
  return Bytes(elements) * packed_element(plan);
}

Bytes unpacking_bytes(const Plan& plan, std::int64_t elements, bool backward) {
  const Bytes packed = packed_bytes(plan, elements);
  if (plan.quantization != Quantization::none) {
    return backward ? 2 * packed : Bytes(0);
  }
  return packed + graph::bytes_of(plan.compute_type, elements);
}

zoo::ModelGraph with_adapters(zoo::ModelGraph block, const Plan& plan, BlockKind kind) {
  const std::vector<std::string> targets = list_items(plan.lora_targets);
  const std::vector<zoo::ModelOperator> operators = std::exchange(block.operators, {});
  bool after_attention = false;
  for (zoo::ModelOperator op : operators) {
    const bool adapted = std::any_of(targets.begin(), targets.end(),
                                     [&](const std::string& name) { return selects(name, op); });
    if (adapted && kind >= kFirstLayerBlock) {
      append_adapter(block, op, plan, matrices_of(block, operators, op, plan));
    }
    freeze(op, after_attention);
    if (kind == kEmbeddingBlock) {
      drop_backward(op);
    }
    after_attention =
        op.kind == graph::OperatorKind::attention || op.kind == graph::OperatorKind::scan;
    block.operators.push_back(std::move(op));
  }
  return block;
}

std::int64_t adapter_parameters(const zoo::Model& model, const Plan& plan) {
  std::vector<std::int64_t> of_blocks;
  for (const zoo::ModelGraph& block : block_graphs(model, plan)) {
    std::int64_t& sum = of_blocks.emplace_back(0);
    for (const zoo::ModelOperator& op : block.operators) {
      sum += op.weights == zoo::Weights::adapter ? op.parameters : 0;
    }
  }
  std::int64_t all = 0;
  for (std::int64_t layer = 0; layer < model.layers; ++layer) {
    all += of_blocks[layer_block(model, plan, layer)];
  }
  return all;
}

double model_flops_share(const Plan& plan) {
  return plan.lora_rank > 0 ? 2.0 / 3 : 1.0;
}

}  // namespace orrery::plan
