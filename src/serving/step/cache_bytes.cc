// SPDX-License-Identifier: Apache-2.0
#include "serving/step/cache_bytes.h"

#include <algorithm>

#include "serving/step/step_cost.h"

namespace orrery::step {

Bytes StepCost::state_of_layer() const {
  const zoo::Mamba& mamba = model_.mamba;
  const std::int64_t tp = options_.degrees.tp;
  return graph::bytes_of(options_.precision.state, mamba.inner() / tp * mamba.state) +
         graph::bytes_of(graph::DataType::bf16, (mamba.kernel - 1) * mamba.convolved() / tp);
}

void StepCost::measure_cache() {
  const std::int64_t kv_heads = std::max<std::int64_t>(1, model_.kv_heads / options_.degrees.tp);
  const std::int64_t value = model_.value_dim > 0 ? model_.value_dim : model_.head_dim;
  const std::int64_t parts = options_.degrees.pp * options_.degrees.cp;
  const auto unlimited = [&](const AttentionKind& kind) {
    return options_.whole_windows || kind.kept == 0;
  };
  std::int64_t widest = 0;
  for (const AttentionKind& kind : attention_) {
    widest = std::max(widest, kind.kept);
  }
  const bool all = std::any_of(attention_.begin(), attention_.end(), unlimited);
  for (const AttentionKind& kind : attention_) {
    const std::int64_t width = kind.latent ? model_.latent.key_value_rank + model_.latent.rotary
                                           : kv_heads * (model_.head_dim + value);
    const Bytes bytes = graph::bytes_of(options_.precision.kv, kind.layers * width) / parts;
    if (unlimited(kind) || (!all && kind.kept == widest)) {
      cache_.per_token += bytes;
    } else {
      cache_.windows.push_back({kind.kept, bytes});
    }
  }
  for (std::size_t kind = 0; kind < kinds_.size(); ++kind) {
    if (is_recurrent(kind)) {
      recurs_ = true;
      cache_.state += kinds_[kind] * state_of_layer() / parts;
    }
  }
}

}  // namespace orrery::step
