// SPDX-License-Identifier: Apache-2.0
/// Sources: names of projections in transformers' and Megatron-Core's modules.
#include "workload/interop/adapter_names.h"

#include <algorithm>
#include <array>
#include <vector>

#include "base/split.h"

namespace orrery::interop {
namespace {

struct Modules {
  std::string_view names;  ///< with blanks around
  std::string_view target;
};
constexpr auto kModules = std::to_array<Modules>({
    {" all all-linear ", "all"},
    {" q_proj k_proj v_proj qkv_proj query key value query_key_value c_attn wqkv wq wk wv "
     "linear_qkv q_a_proj q_b_proj kv_a_proj_with_mqa kv_b_proj linear_q_proj linear_kv_down_proj "
     "linear_kv_up_proj linear_q_down_proj linear_q_up_proj attention_qkv ",
     "attention_qkv"},
    {" o_proj out_proj dense linear_proj wo attention_dense ", "attention_dense"},
    {" gate_proj up_proj gate_up_proj w1 w3 fc1 dense_h_to_4h c_fc linear_fc1 mlp_fc1 ", "mlp_fc1"},
    {" down_proj w2 fc2 dense_4h_to_h linear_fc2 mlp_fc2 ", "mlp_fc2"},
});

}  // namespace

bool add_adapter_target(std::string_view module, std::string& targets) {
  const std::string_view last = module.substr(module.rfind('.') + 1);  // npos + 1: the whole
  const std::string word = " " + std::string(last) + " ";
  const auto* const row = std::ranges::find_if(
      kModules, [&](const Modules& each) { return each.names.find(word) != each.names.npos; });
  if (row == kModules.end()) {
    return false;
  }
  const std::vector<std::string_view> known = split_at(targets, ',');
  if (row->target == "all" || targets == "all") {
    targets = "all";
  } else if (std::ranges::find(known, row->target) == known.end()) {
    targets += (targets.empty() ? "" : ",") + std::string(row->target);
  }
  return true;
}

}  // namespace orrery::interop
