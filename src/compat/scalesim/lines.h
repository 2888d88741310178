// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "base/lists.h"
#include "base/split.h"
#include "base/words.h"

namespace orrery::scalesim {

/// Returns the trimmed parts between separators; one more than there are separators.
inline std::vector<std::string_view> parts_of(std::string_view text, char separator) {
  return mapped(split_at(text, separator), [](std::string_view part) { return trimmed(part); });
}

}  // namespace orrery::scalesim
