// SPDX-License-Identifier: Apache-2.0
/// Says which of several engines gets a request.
#pragma once

#include <array>
#include <cstdint>

#include "base/names.h"

namespace orrery::serving {

enum class Router : std::uint8_t { round_robin, least_requests, least_tokens, prefix_aware };
constexpr auto named_values(Router) {
  return std::to_array<Named<Router>>({
      {Router::round_robin, "round_robin", "each in turn"},
      {Router::least_requests, "least_requests", "that with the fewest unanswered requests"},
      {Router::least_tokens, "least_tokens", "that whose unanswered requests have fewest tokens"},
      {Router::prefix_aware, "prefix_aware",
       "least_tokens, less the prompt's tokens that its cache has"},
  });
}

}  // namespace orrery::serving
