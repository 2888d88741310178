// SPDX-License-Identifier: Apache-2.0
/// Any YAML as a plan: what is accepted survives being written, and is judged against a model.
#include "base/config_node.h"
#include "tests/fuzz/fuzz.h"
#include "workload/plan/plan.h"

namespace {

/// GPT-2 (Radford et al. 2019): 12 layers, 768 wide, 12 heads.
orrery::zoo::Model gpt2() {
  orrery::zoo::Model model;
  model.name = "gpt2";
  model.model_type = "gpt2";
  model.layers = 12;
  model.hidden = 768;
  model.heads = model.kv_heads = 12;
  model.head_dim = 64;
  model.ffn = 4 * 768;
  model.vocab = 50257;
  model.max_positions = 1024;
  return model;
}

}  // namespace

ORRERY_FUZZ(plan) {
  return orrery::fuzz::with_node(
      bytes, size, orrery::ConfigSyntax::yaml, [](const orrery::ConfigNode& node) {
        const auto plan = orrery::plan::parse_plan(node);
        if (!plan) {
          orrery::fuzz::hold_error(plan.error());
          return;
        }
        const auto again =
            orrery::plan::parse_plan(orrery::fuzz::own_node(orrery::plan::to_yaml(*plan)));
        orrery::fuzz::hold(again.has_value() && *again == *plan, "a plan survives being written");
        const auto fits = orrery::plan::check(*plan, gpt2());
        orrery::fuzz::hold(fits.has_value() || !fits.error().empty(), "a refused plan says why");
      });
}
