// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "base/units.h"

namespace orrery::requests {

/// An image in a prompt, as the model's processor and its encoder see it (zoo/image_tokens.h).
struct Image {
  std::int64_t at = 0;  ///< tokens of the prompt before it
  std::int64_t tokens = 0;
  std::int64_t tiles = 1;    ///< that the encoder sees apart
  std::int64_t patches = 0;  ///< of a tile
  std::int64_t encoded = 0;  ///< rows of the text's stream
};

struct Request {
  Time arrival{0};  ///< when the client sends it, from the first one's or the trace's begin
  std::int64_t input = 1;
  std::int64_t output = 1;
  /// A request shares content by ids: tokens [i id_tokens, (i + 1) id_tokens) are equal, with all
  /// before them, where ids[i] are. The first `shared` tokens, of prompt and answer, have ids.
  std::vector<std::uint64_t> ids;
  std::int64_t id_tokens = 1;
  std::int64_t shared = 0;
  std::int32_t adapter = -1;    ///< low-rank adapter that answers it; -1: none
  std::int64_t after = -1;      ///< the turn before it: sent `arrival` after that one's answer
  std::vector<Image> images{};  ///< by `at`; their tokens are among `input`
};

}  // namespace orrery::requests
