// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "base/units.h"

namespace orrery::requests {

struct Request {
  Time arrival{0};  ///< when the client sends it, from the first one's or the trace's begin
  std::int64_t input = 1;
  std::int64_t output = 1;
  /// A request shares content by ids: tokens [i id_tokens, (i + 1) id_tokens) are equal, with all
  /// before them, where ids[i] are. The first `shared` tokens, of prompt and answer, have ids.
  std::vector<std::uint64_t> ids;
  std::int64_t id_tokens = 1;
  std::int64_t shared = 0;
  std::int32_t adapter = -1;  ///< low-rank adapter that answers it; -1: none
  std::int64_t after = -1;    ///< the turn before it: sent `arrival` after that one's answer
};

}  // namespace orrery::requests
