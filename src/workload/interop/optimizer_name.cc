// SPDX-License-Identifier: Apache-2.0
/// Sources: transformers, OptimizerNames; DeepSpeed, runtime/config.py; Megatron-LM, --optimizer.
#include "workload/interop/optimizer_name.h"

#include <algorithm>
#include <array>

namespace orrery::interop {
namespace {

/// Parts of names whose states or messages are not those of the rule that the rest names.
constexpr auto kOthers = std::to_array<std::string_view>(
    {"adam-mini", "adam_mini", "adaptive_muon", "apollo", "badam", "galore", "onebit", "zeroone"});

}  // namespace

std::optional<plan::Optimizer> optimizer_named(std::string_view name) {
  using plan::Optimizer;
  const auto has = [&](std::string_view part) { return name.find(part) != name.npos; };
  if (std::ranges::any_of(kOthers, has)) {
    return std::nullopt;
  }
  if (has("adafactor")) {
    return Optimizer::adafactor;
  }
  if (has("lion")) {
    return Optimizer::lion;
  }
  if (has("muon")) {
    return Optimizer::muon;
  }
  if (has("sgd")) {
    return Optimizer::sgd;
  }
  if (name == "adamw_torch" || name == "adamw_hf" || has("decoupled")) {
    return Optimizer::adam_foreach;
  }
  if (!has("adam")) {
    return std::nullopt;
  }
  return has("8bit") ? Optimizer::adamw_8bit : Optimizer::adam;
}

}  // namespace orrery::interop
