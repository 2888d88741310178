// SPDX-License-Identifier: Apache-2.0
/// Says which operators of a layer run forward again before their backward.
///
///   recompute           none, selective = the module core_attn, full = the whole layer
///   recompute_modules   comma-separated: names of Megatron-LM's modules (the table below) or of
///                       the layer's operators; in addition to selective
///   recompute_layers    n: all this in the first n layers of every chunk only (Megatron's block
///                       method); 0: in all
///
/// Memory: what the selected operators save is there only while their layer's backward runs; the
/// input of the first of a module stays. Of layernorm and moe_act, whose result the next operator
/// saves as its input, that result is dropped and their own input stays.
/// Source: Megatron-LM's --recompute-granularity, --recompute-modules and --recompute-num-layers.
#pragma once

#include <array>
#include <string_view>

#include "base/result.h"
#include "workload/plan/plan.h"
#include "workload/zoo/model.h"

namespace orrery::plan {

struct RecomputeModule {
  std::string_view name;
  std::string_view meaning;
  bool (*holds)(const zoo::ModelOperator&);
};
/// Megatron's names.
const std::array<RecomputeModule, 10>& recompute_modules();

/// Returns whether selective recompute or the plan's modules select the operator (full selects
/// every one).
bool recompute_selects(const Plan& plan, const zoo::ModelOperator& op);

/// Returns whether the module is among the plan's.
bool recomputes_module(const Plan& plan, std::string_view module);

/// Returns whether the n-th layer of a chunk (from 0) recomputes anything.
bool recomputes_layer(const Plan& plan, std::int64_t n);

/// Mistakes: names that are neither modules nor operators of the model's layers, with "did you
/// mean"; modules beside full; layers without anything to recompute.
Result<void> check_recompute(const Plan& plan, const zoo::Model& model);

}  // namespace orrery::plan
