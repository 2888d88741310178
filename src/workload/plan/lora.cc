// SPDX-License-Identifier: Apache-2.0
#include "workload/plan/lora.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "workload/plan/layout.h"
#include "workload/plan/plan_lists.h"
#include "workload/plan/quantize.h"
#include "workload/plan/schedule.h"

namespace orrery::plan {
namespace {

constexpr std::int64_t kMostRank = 65536;

using Role = graph::OperatorRole;

bool is_qkv(const zoo::ModelOperator& op) {
  return op.role == Role::project_qkv;
}
bool is_dense(const zoo::ModelOperator& op) {
  return op.role == Role::project_out && op.branch == graph::Branch::attention;
}
bool is_up(const zoo::ModelOperator& op) {
  return op.role == Role::up || op.role == Role::expert_up;
}
bool is_down(const zoo::ModelOperator& op) {
  return op.role == Role::down || op.role == Role::expert_down;
}
bool is_mlp_matrix(const zoo::ModelOperator& op) {
  return is_up(op) || is_down(op) || op.role == Role::tower_matrix;
}

struct LoraTarget {
  std::string_view name;
  bool (*holds)(const zoo::ModelOperator& op);
};
/// NeMo's names; any weight's GEMM can be named itself as well.
constexpr std::array kTargets{
    LoraTarget{"all", [](const zoo::ModelOperator&) { return true; }},
    LoraTarget{"attention_qkv", is_qkv},
    LoraTarget{"attention_dense", is_dense},
    LoraTarget{"attention",
               [](const zoo::ModelOperator& op) { return is_qkv(op) || is_dense(op); }},
    LoraTarget{"mlp_fc1", is_up},
    LoraTarget{"mlp_fc2", is_down},
    LoraTarget{"mlp", is_mlp_matrix}};

bool can_adapt(const zoo::ModelOperator& op) {
  return op.has_weight && op.role != Role::router;
}

bool selects(std::string_view target, const zoo::ModelOperator& op) {
  const auto named = std::find_if(kTargets.begin(), kTargets.end(),
                                  [&](const LoraTarget& known) { return known.name == target; });
  return can_adapt(op) && (named != kTargets.end() ? named->holds(op) : op.name == target);
}

/// One GEMM of an adapter; fields that neither of them has are empty.
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

/// X A: in front of the frozen GEMM, so it takes its entry into the split part, and its input.
zoo::ModelOperator reduction_of(zoo::ModelOperator& base, const Plan& plan) {
  graph::GemmShape shape = base.gemm;
  shape.n = plan.lora_rank;
  zoo::ModelOperator op = adapter_gemm(base, Role::adapter_down, shape);
  op.gemm_split =
      base.gemm_split == zoo::GemmSplit::row ? zoo::GemmSplit::row : zoo::GemmSplit::none;
  op.split = base.split;
  op.saved = base.saved;
  op.saves = base.saves;
  op.all_tokens = base.gemm_split == zoo::GemmSplit::column && !base.expert;
  op.routed = std::exchange(base.routed, Bytes(0));
  return op;
}

/// (X A) B.
zoo::ModelOperator expansion_of(const zoo::ModelOperator& base, const Plan& plan) {
  graph::GemmShape shape = base.gemm;
  shape.k = plan.lora_rank;
  zoo::ModelOperator op = adapter_gemm(base, Role::adapter_up, shape);
  op.gemm_split =
      base.gemm_split == zoo::GemmSplit::column ? zoo::GemmSplit::column : zoo::GemmSplit::none;
  op.split = base.gemm_split == zoo::GemmSplit::none ? base.split : zoo::Split::none;
  op.saved = graph::size_of(plan.compute_type) * shape.batch * shape.m * shape.k;
  return op;
}

zoo::ModelOperator streaming(const zoo::ModelOperator& base, Role role, zoo::GemmSplit divides) {
  zoo::ModelOperator op;
  op.name = base.name + (role == Role::adapter_join ? "_lora_join" : "_lora_sum");
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

/// Sum of the input's gradients through W and through A.
zoo::ModelOperator join_of(const zoo::ModelOperator& base, const Plan& plan) {
  zoo::ModelOperator op = streaming(base, Role::adapter_join, zoo::GemmSplit::row);
  op.forward_kernels = 0;
  op.backward_bytes =
      3 * (graph::size_of(plan.compute_type) * base.gemm.batch * base.gemm.m * base.gemm.k);
  return op;
}

zoo::ModelOperator sum_of(const zoo::ModelOperator& base, const Plan& plan) {
  zoo::ModelOperator op = streaming(base, Role::adapter_sum, zoo::GemmSplit::column);
  const Bytes result =
      graph::size_of(plan.compute_type) * base.gemm.batch * base.gemm.m * base.gemm.n;
  op.forward_kernels = 2;
  op.forward_bytes = 5 * result;
  op.backward_bytes = 2 * result;
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

/// Appends the operators of an adapter in front of its product, which reads what they make.
void append_adapter(zoo::ModelGraph& block, zoo::ModelOperator& base, const Plan& plan) {
  using graph::ModelTensor;
  const auto tensor = [&](int number) { return block.tensors[static_cast<std::size_t>(number)]; };
  graph::TensorList inputs;
  for (const int read : base.reads) {
    if (tensor(read).use != ModelTensor::Use::parameter) {
      inputs.add(read);
    }
  }
  const graph::Extent rank{graph::Dim::none, plan.lora_rank};
  const graph::ModelTensor result = tensor(base.writes.front());
  const auto matrix = [&](graph::Extent in, graph::Extent out) {
    ModelTensor weight{.use = ModelTensor::Use::parameter, .type = result.type};
    weight.extents = {{{graph::Dim::experts, base.gemm.batch}, in, out}};
    return append(block, weight);
  };
  zoo::ModelOperator down = reduction_of(base, plan);
  down.reads = inputs;
  down.reads.add(matrix({tensor(inputs.front()).extents[1].dim, base.gemm.k}, rank));
  const int narrow =
      append(block, {.type = result.type, .extents = {{result.extents[0], rank, {}}}});
  down.writes = {narrow};
  zoo::ModelOperator up = expansion_of(base, plan);
  up.reads = {narrow, matrix(rank, {result.extents[1].dim, base.gemm.n})};
  up.writes = {append(block, result)};
  up.saves = {narrow};
  zoo::ModelOperator sum = sum_of(base, plan);
  sum.reads = up.writes;
  sum.writes = {append(block, result)};
  base.reads.add(sum.writes.front());
  keep_nothing(base);
  block.operators.push_back(std::move(down));
  block.operators.push_back(join_of(base, plan));
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

class LoraChecker {
 public:
  LoraChecker(const Plan& plan, const zoo::Model& model) : plan_(plan), model_(model) {}

  Result<void> run() {
    if (plan_.lora_rank < 0 || plan_.lora_rank > kMostRank) {
      require(false, "lora_rank", plan_.lora_rank, fmt::format("0 to {}", kMostRank));
    }
    if (plan_.lora_rank == 0) {
      require(plan_.lora_targets == Plan().lora_targets, "lora_targets", plan_.lora_targets,
              "all without lora_rank");
      require(plan_.frozen_type == FrozenType::compute_type, "frozen_type",
              name_of(plan_.frozen_type), "compute_type without lora_rank: nothing is frozen");
    } else {
      targets();
      company();
    }
    if (!error_.empty()) {
      return fail(std::move(error_));
    }
    return {};
  }

 private:
  template <class T>
  void require(bool ok, std::string_view field, const T& found, std::string_view expected) {
    if (!ok) {
      error_.add({{}, std::string(field), fmt::format("{}", found), std::string(expected)});
    }
  }

  void targets() {
    std::vector<std::string> known;
    known.reserve(std::size(kTargets));
    for (const LoraTarget& target : kTargets) {
      known.emplace_back(target.name);
    }
    for (const zoo::ModelOperator& op : operators()) {
      if (can_adapt(op)) {
        known.push_back(op.name);
      }
    }
    const std::vector<std::string> names = list_items(plan_.lora_targets);
    require(!names.empty(), "lora_targets", plan_.lora_targets, "at least one target, as all");
    for (const std::string& name : names) {
      const auto of_layers = operators();
      const bool any = std::any_of(of_layers.begin(), of_layers.end(),
                                   [&](const zoo::ModelOperator& op) { return selects(name, op); });
      require(any, "lora_targets", name,
              "all, attention, attention_qkv, attention_dense, mlp, mlp_fc1, mlp_fc2 or a GEMM "
              "with a weight, as the model's layers have them" +
                  did_you_mean(name, known));
    }
  }

  void company() {
    require(!splits_backward(plan_.schedule), "schedule", name_of(plan_.schedule),
            "gpipe, 1f1b or interleaved with lora_rank: there is hardly a weight gradient to put "
            "off");
    const bool eight_bits = plan_.frozen_type == FrozenType::fp8 &&
                            gemm_type(plan_) == graph::DataType::fp8 && !plan_.quantized_params;
    require(plan_.frozen_type == FrozenType::compute_type ||
                plan_.quantization == Quantization::none || eight_bits,
            "frozen_type", name_of(plan_.frozen_type),
            "compute_type, or fp8 with a recipe of fp8, or quantization none");
    require(plan_.tp_chunks == 1, "tp_chunks", plan_.tp_chunks, "1 with lora_rank");
    require(plan_.recompute_modules.empty() || plan_.recompute_modules == "narrow_act",
            "recompute_modules", plan_.recompute_modules, "none, or narrow_act, with lora_rank");
    require(plan_.overlap_ep == OverlapExperts::off, "overlap_ep", name_of(plan_.overlap_ep),
            "false with lora_rank");
    require(model_.experts == 0 || expert_tensor_parallel(plan_) == 1, "etp",
            expert_tensor_parallel(plan_), "1 with lora_rank");
  }

  std::vector<zoo::ModelOperator> operators() const {
    std::vector<zoo::ModelOperator> all;
    const int kinds = static_cast<int>(zoo::layer_kinds(model_).size());
    for (int kind = 0; kind < kinds; ++kind) {
      const auto layer = zoo::layer_operators(model_, {.sequence = 1}, kind);
      all.insert(all.end(), layer.begin(), layer.end());
    }
    return all;
  }

  const Plan& plan_;
  const zoo::Model& model_;
  Error error_;
};

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
      append_adapter(block, op, plan);
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

double model_flops_share(const Plan& plan) {
  return plan.lora_rank > 0 ? 2.0 / 3 : 1.0;
}

Result<void> check_lora(const Plan& plan, const zoo::Model& model) {
  return LoraChecker(plan, model).run();
}

}  // namespace orrery::plan
