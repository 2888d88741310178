// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/collect.h"
#include "base/lists.h"
#include "workload/plan/layout.h"
#include "workload/plan/lora.h"
#include "workload/plan/lora_targets.h"
#include "workload/plan/plan_lists.h"
#include "workload/plan/quantize.h"
#include "workload/plan/schedule.h"

namespace orrery::plan {
namespace {

constexpr std::int64_t kMostRank = 65536;

class LoraChecker {
 public:
  LoraChecker(const Plan& plan, const zoo::Model& model) : plan_(plan), model_(model) {}

  Result<void> run() {
    if (plan_.lora_rank < 0 || plan_.lora_rank > kMostRank) {
      require(false, "lora_rank", plan_.lora_rank, fmt::format("0 to {}", kMostRank));
    }
    require(plan_.lora_dropout >= 0 && plan_.lora_dropout < 1, "lora_dropout", plan_.lora_dropout,
            "a share from 0 to less than 1");
    if (plan_.lora_rank == 0) {
      require(plan_.lora_dropout == 0, "lora_dropout", plan_.lora_dropout,
              "0 without adapters, or a lora_rank");
      require(plan_.lora_targets == Plan().lora_targets, "lora_targets", plan_.lora_targets,
              "all without lora_rank");
      require(plan_.frozen_type == FrozenType::compute_type, "frozen_type",
              name_of(plan_.frozen_type), "compute_type without lora_rank: nothing is frozen");
    } else {
      targets();
      company();
    }
    return or_mistakes(std::move(error_));
  }

 private:
  template <class T>
  void require(bool ok, std::string_view field, const T& found, std::string_view expected) {
    if (!ok) {
      error_.add({{}, std::string(field), fmt::format("{}", found), std::string(expected)});
    }
  }

  void targets() {
    std::vector<std::string> known = mapped<std::string>(kLoraTargets, &LoraTarget::name);
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

Result<void> check_lora(const Plan& plan, const zoo::Model& model) {
  return LoraChecker(plan, model).run();
}

}  // namespace orrery::plan
