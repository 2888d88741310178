// SPDX-License-Identifier: Apache-2.0
#include "workload/plan/recompute.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/collect.h"
#include "base/lists.h"
#include "workload/plan/plan_lists.h"

namespace orrery::plan {
namespace {

using Role = graph::OperatorRole;

bool is_core(const zoo::ModelOperator& op) {
  return op.recompute == zoo::RecomputeGroup::selective;
}
bool is_norm(const zoo::ModelOperator& op) {
  return op.role == Role::norm_branch;
}
bool is_mlp(const zoo::ModelOperator& op) {
  return op.branch == graph::Branch::mlp;
}
bool is_shared(const zoo::ModelOperator& op) {
  return op.branch == graph::Branch::shared_expert;
}
bool is_moe(const zoo::ModelOperator& op) {
  return op.branch == graph::Branch::experts || is_shared(op);
}
bool is_expert_activation(const zoo::ModelOperator& op) {
  return op.role == Role::expert_activation;
}
/// A layer has seven matrices, and torchtitan runs those of keys, outputs and MLP's second one
/// again: 4.75 h^2 of 13 in Llama 3 8B. The output's and the MLP's last are 4.5 here, where
/// queries, keys and values are one matrix, and so are gate and up.
bool is_every_other(const zoo::ModelOperator& op) {
  return op.role == Role::norm_branch || op.role == Role::rotate || op.role == Role::activation ||
         op.role == Role::project_out || op.role == Role::down;
}
bool is_activation(const zoo::ModelOperator& op) {
  return op.role == Role::activation;
}
bool is_streams(const zoo::ModelOperator& op) {
  return op.role >= Role::mix_project && op.role <= Role::expand;
}
/// Returns whether the operator belongs to the module that projects latents up, which has their
/// norms too: Transformer Engine's layer of both is one module in Megatron-LM's specification of
/// latent attention (gpt_layer_specs.py, linear_q_up_proj and linear_kv_up_proj).
bool is_latent_up(const zoo::ModelOperator& op) {
  return op.role == Role::norm_latent || op.role == Role::query_up ||
         op.role == Role::key_value_up || op.role == Role::rotate_latent ||
         op.role == Role::norm_queries;
}

const RecomputeModule* module_named(std::string_view name) {
  const auto& modules = recompute_modules();
  const auto found = std::find_if(modules.begin(), modules.end(),
                                  [&](const RecomputeModule& m) { return m.name == name; });
  return found == modules.end() ? nullptr : &*found;
}

/// Operators of the model's layers with one choice of kernels.
void add_operators(std::vector<std::string>& names, const zoo::Model& model,
                   const zoo::ShapeOptions& options) {
  const int kinds = static_cast<int>(zoo::layer_kinds(model).size());
  for (int kind = 0; kind < kinds; ++kind) {
    for (const zoo::ModelOperator& op : zoo::layer_operators(model, options, kind)) {
      names.push_back(op.name);
    }
  }
}

/// Modules and operators of the model's layers.
std::vector<std::string> known_names(const zoo::Model& model) {
  std::vector<std::string> names = mapped<std::string>(recompute_modules(), &RecomputeModule::name);
  for (const zoo::AttentionKernel kernel :
       {zoo::AttentionKernel::unfused, zoo::AttentionKernel::flash}) {
    add_operators(names, model, {.sequence = 1, .attention = kernel});
  }
  return names;
}

}  // namespace

const std::array<RecomputeModule, 10>& recompute_modules() {
  static constexpr std::array<RecomputeModule, 10> kModules{{
      {"core_attn", "attention without its projections", is_core},
      {"layernorm", "norms before attention and MLP", is_norm},
      {"mlp", "both matrices of a dense MLP and what is between them", is_mlp},
      {"moe", "router, exchange of tokens and experts, the shared one included", is_moe},
      {"moe_act", "activation of routed experts", is_expert_activation},
      {"mla_up_proj", "up-projections of latent attention with their norms, and rotary embedding",
       is_latent_up},
      {"shared_experts", "the shared expert", is_shared},
      {"every_other_gemm",
       "norms, rotary embedding, activation and every other GEMM: torchtitan's selective op",
       is_every_other},
      {"narrow_act",
       "activation of a dense MLP, from its input in the type of quantised GEMMs "
       "(activation_func_fp8_input_store)",
       is_activation},
      {"mhc", "hyper-connections: weights, sums and mixes of the residual streams", is_streams},
  }};
  return kModules;
}

bool recompute_selects(const Plan& plan, const zoo::ModelOperator& op) {
  if (plan.recompute == Recompute::selective && is_core(op)) {
    return true;
  }
  return any_item(plan.recompute_modules, [&](std::string_view name) {
    const RecomputeModule* module = module_named(name);
    return module != nullptr ? module->holds(op) : op.name == name;
  });
}

bool recomputes_module(const Plan& plan, std::string_view module) {
  const std::vector<std::string> items = list_items(plan.recompute_modules);
  return std::ranges::find(items, module) != items.end();
}

bool recomputes_layer(const Plan& plan, std::int64_t n) {
  return plan.recompute_layers == 0 || n < plan.recompute_layers;
}

Result<void> check_recompute(const Plan& plan, const zoo::Model& model) {
  Error error;
  if (plan.recompute_layers > 0 && plan.recompute == Recompute::none &&
      plan.recompute_modules.empty()) {
    error.add({{},
               "recompute_layers",
               std::to_string(plan.recompute_layers),
               "0, or recompute or recompute_modules that say what of them"});
  }
  if (plan.recompute_layers > model.layers) {
    error.add({{},
               "recompute_layers",
               std::to_string(plan.recompute_layers),
               "at most the model's " + std::to_string(model.layers) + " layers; 0 = all"});
  }
  if (plan.recompute == Recompute::full && !plan.recompute_modules.empty()) {
    error.add({{},
               "recompute_modules",
               plan.recompute_modules,
               "none with recompute full, which has them all"});
  }
  for (const std::string& name : list_items(plan.recompute_modules)) {
    if (module_named(name) != nullptr) {  // searches ask for millions of plans
      continue;
    }
    const std::vector<std::string> known = known_names(model);
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      error.add({{},
                 "recompute_modules",
                 name,
                 "a module (core_attn, layernorm, mlp, moe, moe_act, mla_up_proj, "
                 "shared_experts) or an operator of the model's layers" +
                     did_you_mean(name, known)});
    }
  }
  return or_mistakes(std::move(error));
}

}  // namespace orrery::plan
