// SPDX-License-Identifier: Apache-2.0
#include "serving/weight_window.h"

#include <algorithm>
#include <cassert>
#include <vector>

namespace orrery::serving {

StreamedTokens stream_tokens(const WeightWindow& window, const BlockTimes& times,
                             std::int64_t tokens) {
  assert(window.layers >= 1 && window.blocks >= 1 && tokens >= 1);
  const std::int64_t per_token = 2 * window.layers;
  const bool whole = window.blocks >= per_token;
  std::vector<Time> released(static_cast<std::size_t>(window.blocks));  // of the last w loads
  std::size_t loads = 0;
  Time loaded{0};    // end of the last load
  Time computed{0};  // end of the last all-reduce
  StreamedTokens result;
  for (std::int64_t i = 0; i < tokens * per_token; ++i) {
    const bool is_mlp = i % 2 == 1;
    const std::int64_t layer = i / 2 % window.layers;
    const bool retained =
        whole ? i >= per_token : is_mlp && window.retain > 0 && layer % window.retain == 0;
    Time ready{0};
    if (!retained) {
      Time& slot = released[loads++ % released.size()];
      loaded = std::max(loaded, slot) + (is_mlp ? times.load_mlp : times.load_attention);
      ready = loaded;
      const Time begin = std::max(computed, ready);
      slot = begin + (is_mlp ? times.mlp : times.attention);
    }
    const Time begin = std::max(computed, ready);
    result.stall += begin - computed;
    computed = begin + (is_mlp ? times.mlp : times.attention) + times.all_reduce;
    if (i + 1 == per_token) {
      result.first = computed;
    }
  }
  result.next = tokens > 1 ? (computed - result.first) / (tokens - 1) : result.first;
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
  const double worker = static_cast<double>(window / 2) * block.attention +
                        static_cast<double>((window + 1) / 2) * block.mlp;
  if (!master) {
    return worker;
  }
  const double ends = (window == 1 ? 1 : 2) * block.embedding + block.hidden;
  const double inner = window < 3 ? 0
                                  : static_cast<double>((window - 2) / 2) * block.attention +
                                        static_cast<double>((window - 1) / 2) * block.mlp;
  return std::max(worker, ends + inner);
}

}  // namespace orrery::serving
