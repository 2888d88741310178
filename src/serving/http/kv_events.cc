// SPDX-License-Identifier: Apache-2.0
/// Changes of the blocks of prefix caches, as an endpoint tells them.
#include <span>

#include "serving/http/endpoint.h"

namespace orrery::http {

void Endpoint::changed(std::int64_t rank, Time at, std::size_t request,
                       const scheduler::KvChange& change) {
  if (watchers_.empty()) {
    return;
  }
  std::span<const std::int64_t> tokens;
  const auto found = change.stored ? exchanges_.find(whose_[request].exchange) : exchanges_.end();
  if (found != exchanges_.end()) {
    const std::vector<std::int64_t>& prompt = found->second.choices[whose_[request].choice].prompt;
    const auto first = static_cast<std::size_t>(change.position * block_);
    if (const auto block = static_cast<std::size_t>(block_); first + block <= prompt.size()) {
      tokens = std::span(prompt).subspan(first, block);
    }
  }
  events_.push({.at = at,
                .order = order_++,
                .served = {},
                .notice = kv_event(notices_++, at, rank, change, tokens, block_)});
}

}  // namespace orrery::http
