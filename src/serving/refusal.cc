// SPDX-License-Identifier: Apache-2.0
#include "serving/refusal.h"

#include <fmt/format.h>

#include <algorithm>

namespace orrery::serving {

std::string why_none(const Run& run, const std::vector<requests::Request>& sent) {
  const Engine& engine = run.engine;
  if (sent.empty()) {
    return "each is longer than the engine takes";
  }
  const std::int64_t shortest = std::ranges::min(sent, {}, &requests::Request::input).input;
  const std::string prompt =
      fmt::format("{} prompt has {} tokens", sent.size() > 1 ? "the shortest" : "the", shortest);
  if (shortest >= engine.max_model_len) {
    return fmt::format("{}, the model takes {} tokens with the answer", prompt,
                       engine.max_model_len);
  }
  if (!engine.chunked_prefill && shortest > engine.max_num_batched_tokens) {
    return fmt::format("{}, a step, which does not cut prompts, takes {}", prompt,
                       engine.max_num_batched_tokens);
  }
  const std::int64_t state = run.cache.state > Bytes(0) ? run.cache.fixed_tokens(0) : 0;
  return fmt::format("{}, memory has {} KV blocks of {} tokens for it and its answer{}", prompt,
                     run.kv_blocks, engine.block_size,
                     state > 0 ? fmt::format(", of which a state takes {} tokens", state) : "");
}

}  // namespace orrery::serving
