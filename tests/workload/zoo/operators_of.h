// SPDX-License-Identifier: Apache-2.0
/// A small model, and what tests of operators look for.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "workload/zoo/model.h"

namespace orrery::testing {

/// H = 512, 8 query heads and 2 key-value heads of 64, F = 1536, V = 1000, SwiGLU; no bias, no
/// dropout.
inline zoo::Model small_llama() {
  zoo::Model m;
  m.name = "small-llama";
  m.layers = 2;
  m.hidden = 512;
  m.heads = 8;
  m.kv_heads = 2;
  m.head_dim = 64;
  m.ffn = 1536;
  m.vocab = 1000;
  m.max_positions = 128;
  m.mlp = zoo::MlpKind::swiglu;
  m.norm = zoo::NormKind::rms_norm;
  m.position = zoo::PositionKind::rotary;
  m.tied_embedding = m.attention_bias = m.attention_output_bias = m.mlp_bias = false;
  return m;
}

inline zoo::ModelOperator find(const std::vector<zoo::ModelOperator>& operators,
                               const std::string& name) {
  const auto found = std::find_if(operators.begin(), operators.end(),
                                  [&](const auto& op) { return op.name == name; });
  if (found == operators.end()) {
    ADD_FAILURE() << "no operator " << name;
    return {};
  }
  return *found;
}

inline std::vector<std::string> names(const std::vector<zoo::ModelOperator>& operators) {
  std::vector<std::string> result;
  result.reserve(operators.size());
  for (const zoo::ModelOperator& op : operators) {
    result.push_back(op.name);
  }
  return result;
}

}  // namespace orrery::testing
