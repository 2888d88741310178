// SPDX-License-Identifier: Apache-2.0
/// Targets of low-rank adapters: which weights a name of `lora_targets` stands for. Names are
/// NeMo's; any weight's GEMM can be named itself as well.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

#include "workload/zoo/model.h"

namespace orrery::plan {

inline bool is_qkv(const zoo::ModelOperator& op) {
  return op.role == graph::OperatorRole::project_qkv;
}
inline bool is_dense(const zoo::ModelOperator& op) {
  return op.role == graph::OperatorRole::project_out && op.branch == graph::Branch::attention;
}
inline bool is_up(const zoo::ModelOperator& op) {
  return op.role == graph::OperatorRole::up || op.role == graph::OperatorRole::expert_up;
}
inline bool is_down(const zoo::ModelOperator& op) {
  return op.role == graph::OperatorRole::down || op.role == graph::OperatorRole::expert_down;
}
inline bool is_mlp_matrix(const zoo::ModelOperator& op) {
  return is_up(op) || is_down(op) || op.role == graph::OperatorRole::tower_matrix;
}

/// LoraTarget is a name and the operators that it stands for.
struct LoraTarget {
  std::string_view name;
  bool (*holds)(const zoo::ModelOperator& op);
};
inline constexpr std::array kLoraTargets{
    LoraTarget{"all", [](const zoo::ModelOperator&) { return true; }},
    LoraTarget{"attention_qkv", is_qkv},
    LoraTarget{"attention_dense", is_dense},
    LoraTarget{"attention",
               [](const zoo::ModelOperator& op) { return is_qkv(op) || is_dense(op); }},
    LoraTarget{"mlp_fc1", is_up},
    LoraTarget{"mlp_fc2", is_down},
    LoraTarget{"mlp", is_mlp_matrix}};

inline bool can_adapt(const zoo::ModelOperator& op) {
  return op.has_weight && op.role != graph::OperatorRole::router;
}

inline bool selects(std::string_view target, const zoo::ModelOperator& op) {
  const auto named = std::find_if(kLoraTargets.begin(), kLoraTargets.end(),
                                  [&](const LoraTarget& known) { return known.name == target; });
  return can_adapt(op) && (named != kLoraTargets.end() ? named->holds(op) : op.name == target);
}

}  // namespace orrery::plan
