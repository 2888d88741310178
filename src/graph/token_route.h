// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>

namespace orrery::graph {

/// The experts that a token goes to: `copies` of them at random. Where routing is limited to a part
/// of the nodes, `chosen` of `groups` groups of neighbouring experts first, then experts of these
/// (DeepSeek-AI 2024, "DeepSeek-V3", section 2.1.2).
struct TokenRoute {
  std::int64_t copies = 0;  ///< 0: not known
  std::int64_t groups = 1;
  std::int64_t chosen = 1;

  friend auto operator<=>(const TokenRoute&, const TokenRoute&) = default;
};

}  // namespace orrery::graph
