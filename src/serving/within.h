// SPDX-License-Identifier: Apache-2.0
/// The checks that studies of this folder have in common. Internal to this folder.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/beyond_time.h"
#include "base/result.h"
#include "base/units.h"

namespace orrery::serving {

/// Returns a mistake for every field of the result that is beyond simulated time.
template <class Run>
Error beyond_time(const Run& run) {
  Error error;
  Run::fields([&](std::string_view name, auto member, std::string_view) {
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(run.*member)>, Time>) {
      if ((run.*member).is_overflow()) {
        error.add({"", std::string(name), "", kBeyondTime});
      }
    }
  });
  return error;
}

/// Adds a mistake where the field is not from `least` to `most`.
inline void require_within(Error& error, const char* field, std::int64_t value, std::int64_t least,
                           std::int64_t most) {
  if (value < least || value > most) {
    error.add({"", field, std::to_string(value),
               fmt::format("a whole number from {} to {}", least, most)});
  }
}

}  // namespace orrery::serving
