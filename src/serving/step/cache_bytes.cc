// SPDX-License-Identifier: Apache-2.0
#include "serving/step/cache_bytes.h"

#include <algorithm>
#include <cmath>

#include "serving/step/attention_cost.h"

namespace orrery::step {

Bytes state_of_layer(const PassPrices& prices) {
  const zoo::Mamba& mamba = prices.model().mamba;
  const StepOptions& options = prices.options();
  const std::int64_t tp = options.degrees.tp;
  return graph::bytes_of(options.precision.state, mamba.inner() / tp * mamba.state) +
         graph::bytes_of(graph::DataType::bf16, (mamba.kernel - 1) * mamba.convolved() / tp);
}

void AttentionCost::add_compressed(const AttentionKind& kind, CacheBytes& cache) const {
  const auto of_layers = [&](double bytes) {
    const auto parts = static_cast<double>(options_.degrees.pp);
    return Bytes(std::llround(static_cast<double>(kind.layers) * bytes / parts));
  };
  const double key = shared_key_bytes(model_, options_.precision.kv);
  cache.windows.push_back({kind.kept, of_layers(key)});
  const std::int64_t compression = kind.kind.compression;
  if (compression == 0) {
    return;
  }
  const bool chooses = kind.kind.chosen > 0;
  const double index = chooses ? index_key_bytes(index_.dim) : 0;
  cache.per_token += of_layers((key + index) / static_cast<double>(compression));
  // Values and weights in fp32 of the tokens that become the next key.
  const std::int64_t width = model_.head_dim + (chooses ? index_.dim : 0);
  const std::int64_t series = chooses ? 2 : 1;
  constexpr std::int64_t kValueAndWeight = 8;  // bytes
  cache.windows.push_back(
      {series * compression, of_layers(static_cast<double>(kValueAndWeight * series * width))});
}

CacheBytes AttentionCost::cache() const {
  CacheBytes cache;
  const std::int64_t parts = options_.degrees.pp * options_.degrees.cp;
  const auto unlimited = [&](const AttentionKind& kind) {
    return options_.whole_windows || kind.kept == 0 || kind.kind.compression > 0;
  };
  std::int64_t widest = 0;
  for (const AttentionKind& kind : attention_) {
    widest = std::max(widest, kind.kept);
  }
  const bool all = std::any_of(attention_.begin(), attention_.end(), unlimited);
  for (const AttentionKind& kind : attention_) {
    if (kind.is(zoo::MixerKind::compressed_attention)) {
      add_compressed(kind, cache);
      continue;
    }
    const std::int64_t width = kind.is(zoo::MixerKind::latent_attention)
                                   ? model_.latent.key_value_rank + model_.latent.rotary
                                   : kind.kv_heads * (kind.head_dim + kind.value);
    Bytes bytes = graph::bytes_of(options_.precision.kv, kind.layers * width) / parts;
    if (kind.is(zoo::MixerKind::latent_attention) && index_.heads > 0) {
      bytes += Bytes(std::llround(static_cast<double>(kind.layers) * index_key_bytes(index_.dim))) /
               parts;
    }
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
