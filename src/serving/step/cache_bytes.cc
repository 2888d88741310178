// SPDX-License-Identifier: Apache-2.0
#include "serving/step/cache_bytes.h"

#include <algorithm>

#include "serving/step/attention_cost.h"

namespace orrery::step {

Bytes state_of_layer(const PassPrices& prices) {
  const zoo::Mamba& mamba = prices.model().mamba;
  const StepOptions& options = prices.options();
  const std::int64_t tp = options.degrees.tp;
  return graph::bytes_of(options.precision.state, mamba.inner() / tp * mamba.state) +
         graph::bytes_of(graph::DataType::bf16, (mamba.kernel - 1) * mamba.convolved() / tp);
}

CacheBytes AttentionCost::cache() const {
  CacheBytes cache;
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
                                           : kv_heads_ * (model_.head_dim + value_);
    const Bytes bytes = graph::bytes_of(options_.precision.kv, kind.layers * width) / parts;
    if (unlimited(kind) || (!all && kind.kept == widest)) {
      cache.per_token += bytes;
    } else {
      cache.windows.push_back({kind.kept, bytes});
    }
  }
  const std::vector<std::int64_t>& kinds = prices_.kinds();
  for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
    if (prices_.is_recurrent(kind)) {
      cache.state += kinds[kind] * state_of_layer(prices_) / parts;
    }
  }
  return cache;
}

}  // namespace orrery::step
