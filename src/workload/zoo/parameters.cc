// SPDX-License-Identifier: Apache-2.0
#include "workload/zoo/model.h"

namespace orrery {
namespace {

std::int64_t attention_parameters(const Model& m) {
  const std::int64_t query = m.heads * m.head_dim;
  const std::int64_t qkv = query + 2 * m.kv_heads * m.head_dim;
  return m.hidden * qkv + (m.attention_bias ? qkv : 0) + query * m.hidden +
         (m.attention_output_bias ? m.hidden : 0);
}

std::int64_t mlp_parameters(const Model& m) {
  const std::int64_t inner = (m.mlp == MlpKind::swiglu ? 2 : 1) * m.ffn;
  return m.hidden * inner + m.ffn * m.hidden + (m.mlp_bias ? inner + m.hidden : 0);
}

}  // namespace

ParameterCount count_parameters(const Model& model) {
  const std::int64_t norm = model.hidden * (model.norm == NormKind::layer_norm ? 2 : 1);
  ParameterCount count;
  count.per_layer = 2 * norm + attention_parameters(model) + mlp_parameters(model);
  count.embedding = model.vocab * model.hidden;
  count.position = model.position == PositionKind::learned ? model.max_positions * model.hidden : 0;
  count.final_norm = norm;
  count.head = model.tied_embedding ? 0 : model.vocab * model.hidden;
  count.total = model.layers * count.per_layer + count.embedding + count.position +
                count.final_norm + count.head;
  return count;
}

}  // namespace orrery
