// SPDX-License-Identifier: Apache-2.0
#include "serving/step/weight_window.h"

#include <algorithm>
#include <cassert>
#include <vector>

namespace orrery::step {

namespace {

/// One device's disk and window.
class Loader {
 public:
  Loader(const BlockTimes& times, std::int64_t blocks)
      : times_(times), released_(static_cast<std::size_t>(blocks)) {}

  /// End of computing a block that may begin at `ready`.
  Time compute(bool is_mlp, bool retained, Time ready) {
    const Time work = is_mlp ? times_.mlp : times_.attention;
    if (retained) {
      return ready + work;
    }
    Time& slot = released_[loads_++ % released_.size()];
    loaded_ = std::max(loaded_, slot) + (is_mlp ? times_.load_mlp : times_.load_attention);
    slot = std::max(ready, loaded_) + work;
    return slot;
  }

 private:
  const BlockTimes& times_;
  std::vector<Time> released_;  ///< of the last blocks
  std::size_t loads_ = 0;
  Time loaded_{0};  ///< end of the last load
};

}  // namespace

StreamedTokens stream_tokens(const WeightWindow& window, const BlockTimes& times,
                             std::int64_t tokens) {
  return stream_tokens(window, std::span(&times, 1), tokens);
}

StreamedTokens stream_tokens(const WeightWindow& window, std::span<const BlockTimes> devices,
                             std::int64_t tokens) {
  assert(window.layers >= 1 && window.blocks >= 1 && tokens >= 1 && !devices.empty());
  const std::int64_t per_token = 2 * window.layers;
  const bool whole = window.blocks >= per_token;
  std::vector<Loader> loaders;
  Time attention{0};
  Time mlp{0};
  for (const BlockTimes& times : devices) {
    loaders.emplace_back(times, window.blocks);
    attention = std::max(attention, times.attention);
    mlp = std::max(mlp, times.mlp);
  }
  Time reduced{0};  // end of the last all-reduce
  StreamedTokens result;
  for (std::int64_t i = 0; i < tokens * per_token; ++i) {
    const bool is_mlp = i % 2 == 1;
    const std::int64_t layer = i / 2 % window.layers;
    const bool retained =
        whole ? i >= per_token : is_mlp && window.retain > 0 && layer % window.retain == 0;
    Time computed{0};
    for (Loader& loader : loaders) {
      computed = std::max(computed, loader.compute(is_mlp, retained, reduced));
    }
    result.stall += computed - reduced - (is_mlp ? mlp : attention);
    reduced = computed + devices.front().all_reduce;
    if (i + 1 == per_token) {
      result.first = reduced;
    }
  }
  result.next = tokens > 1 ? (reduced - result.first) / (tokens - 1) : result.first;
  return result;
}

bool loose_condition(const BlockTimes& t, std::int64_t layers) {
  if (t.attention + t.mlp + 2 * t.all_reduce < t.load_mlp + t.load_attention) {
    return false;
  }
  bool ahead = true;     // of the MLP's loads
  bool mirrored = true;  // of the attention's
  for (std::int64_t l = 1; l <= layers; ++l) {
    const Time between = (2 * l - 1) * t.all_reduce;
    ahead = ahead && l * t.attention + (l - 1) * t.mlp + between >=
                         l * t.load_mlp + (l - 1) * t.load_attention;
    mirrored = mirrored && l * t.mlp + (l - 1) * t.attention + between >=
                               l * t.load_attention + (l - 1) * t.load_mlp;
  }
  return ahead || mirrored;
}

bool tight_condition(const BlockTimes& t) {
  return t.attention + t.all_reduce >= t.load_mlp && t.mlp + t.all_reduce >= t.load_attention;
}

double peak_elements(const BlockElements& block, std::int64_t window, bool master) {
  const auto elements = [&](std::int64_t attentions, std::int64_t mlps) {
    return static_cast<double>(attentions) * block.attention +
           static_cast<double>(mlps) * block.mlp;
  };
  const double worker = elements(window / 2, (window + 1) / 2);
  if (!master) {
    return worker;
  }
  const double ends = (window == 1 ? 1 : 2) * block.embedding + block.hidden;
  const double inner = window < 3 ? 0 : elements((window - 2) / 2, (window - 1) / 2);
  return std::max(worker, ends + inner);
}

}  // namespace orrery::step
