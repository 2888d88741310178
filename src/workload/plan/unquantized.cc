// SPDX-License-Identifier: Apache-2.0
#include "workload/plan/unquantized.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "base/collect.h"
#include "base/lists.h"
#include "workload/plan/plan_lists.h"

namespace orrery::plan {
namespace {

struct Module {
  std::string_view name;
  bool (*holds)(const zoo::ModelOperator& op);
};

using Role = graph::OperatorRole;

bool is_attention(const zoo::ModelOperator& op) {
  const bool projects = (op.role >= Role::project_qkv && op.role <= Role::key_value_up) ||
                        op.role == Role::project_groups || op.role == Role::project_out ||
                        op.role == Role::index_project;
  return projects && op.branch == graph::Branch::attention && op.depth == 0;
}
bool is_dense_mlp(const zoo::ModelOperator& op) {
  return op.branch == graph::Branch::mlp && op.depth == 0;
}
bool is_expert(const zoo::ModelOperator& op) {
  return op.expert;
}
bool is_shared_expert(const zoo::ModelOperator& op) {
  return op.branch == graph::Branch::shared_expert && op.depth == 0;
}
bool is_latent(const zoo::ModelOperator& op) {
  return (op.role == Role::latent_down || op.role == Role::latent_up) && op.depth == 0;
}
bool is_mamba(const zoo::ModelOperator& op) {
  return op.branch == graph::Branch::mamba && op.depth == 0;
}
bool is_prediction(const zoo::ModelOperator& op) {
  return op.depth > 0;
}

constexpr std::array kModules{
    Module{"attention", is_attention}, Module{"mlp", is_dense_mlp},
    Module{"experts", is_expert},      Module{"shared_experts", is_shared_expert},
    Module{"latent", is_latent},       Module{"mamba", is_mamba},
    Module{"mtp", is_prediction}};

bool keeps_type(std::string_view name, const zoo::ModelOperator& op) {
  const auto module = std::find_if(kModules.begin(), kModules.end(),
                                   [&](const Module& known) { return known.name == name; });
  return op.has_weight && (module == kModules.end() ? op.name == name : module->holds(op));
}

std::vector<zoo::ModelOperator> weights_of(const zoo::Model& model) {
  const zoo::ShapeOptions one{.sequence = 1};
  std::vector<zoo::ModelOperator> all = zoo::head_operators(model, one);
  const int kinds = static_cast<int>(zoo::layer_kinds(model).size());
  for (int kind = 0; kind < kinds; ++kind) {
    const auto layer = zoo::layer_operators(model, one, kind);
    all.insert(all.end(), layer.begin(), layer.end());
  }
  std::erase_if(all, [](const zoo::ModelOperator& op) { return !op.has_weight; });
  return all;
}

void check_modules(Error& error, const Plan& plan, const zoo::Model& model) {
  const std::vector<zoo::ModelOperator> weights = weights_of(model);
  for (const std::string& name : list_items(plan.unquantized_modules)) {
    if (std::any_of(weights.begin(), weights.end(),
                    [&](const zoo::ModelOperator& op) { return keeps_type(name, op); })) {
      continue;
    }
    std::vector<std::string> known = mapped<std::string>(kModules, &Module::name);
    for (const zoo::ModelOperator& op : weights) {
      known.push_back(op.name);
    }
    error.add({{},
               "unquantized_modules",
               name,
               "attention, mlp, experts, shared_experts, latent, mamba, mtp or a GEMM with a "
               "weight, as the model has them" +
                   did_you_mean(name, known)});
  }
}

}  // namespace

bool has_unquantized_layers(const Plan& plan) {
  return plan.unquantized_start_layers + plan.unquantized_end_layers > 0;
}

bool is_unquantized_layer(const Plan& plan, const zoo::Model& model, std::int64_t layer) {
  return layer < plan.unquantized_start_layers ||
         layer >= model.layers - plan.unquantized_end_layers;
}

void mark_unquantized(std::vector<zoo::ModelOperator>& block, const Plan& plan) {
  for (const std::string& name : list_items(plan.unquantized_modules)) {
    for (zoo::ModelOperator& op : block) {
      op.unquantized = op.unquantized || keeps_type(name, op);
    }
  }
}

Result<void> check_unquantized(const Plan& plan, const zoo::Model& model) {
  Error error;
  const bool quantizes = plan.quantization != Quantization::none;
  for (const auto& [field, layers] :
       {std::pair{"unquantized_start_layers", plan.unquantized_start_layers},
        std::pair{"unquantized_end_layers", plan.unquantized_end_layers}}) {
    if (layers == 0) {  // searches check millions of plans
      continue;
    }
    const auto require = [&](bool ok, std::string expected) {
      if (!ok) {
        error.add({{}, field, std::to_string(layers), std::move(expected)});
      }
    };
    require(layers > 0 && layers <= model.layers,
            "a number from 0 to the model's " + std::to_string(model.layers) + " layers");
    require(layers < 0 || quantizes, "0 without quantization");
    require(layers < 0 || plan.quantization != Quantization::fp8_delayed,
            "0 with fp8-delayed: its scales are updated for all layers at once");
  }
  if (!plan.unquantized_modules.empty()) {
    if (quantizes) {
      check_modules(error, plan, model);
    } else {
      error.add({{}, "unquantized_modules", plan.unquantized_modules, "none without quantization"});
    }
  }
  return or_mistakes(std::move(error));
}

}  // namespace orrery::plan
