// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace orrery {

/// Returns the mistake that something else stands at a place than is expected there; where nothing
/// stands, it is missing.
inline Mistake misread(std::string where, std::string field, std::string_view found,
                       const std::string& expected) {
  const bool missing = found.empty();
  return {std::move(where), std::move(field), std::string(found),
          (missing ? "missing; expected " : "") + expected};
}

}  // namespace orrery
