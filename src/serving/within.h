// SPDX-License-Identifier: Apache-2.0
/// The check that studies of this folder have in common. Internal to this folder.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>

#include "base/result.h"

namespace orrery::serving {

/// A mistake where the field is not from `least` to `most`.
inline void require_within(Error& error, const char* field, std::int64_t value, std::int64_t least,
                           std::int64_t most) {
  if (value < least || value > most) {
    error.add({"", field, std::to_string(value),
               fmt::format("a whole number from {} to {}", least, most)});
  }
}

}  // namespace orrery::serving
