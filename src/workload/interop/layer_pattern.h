// SPDX-License-Identifier: Apache-2.0
/// --moe-layer-freq of Megatron-LM. Internal to this folder.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace orrery::interop {

/// Returns which of `layers` layers have experts. "N": every N-th, from the first; else a Python
/// expression of lists of 0 and 1 with + and *, such as "([0]*3+[1]*58)", with one entry per layer.
Result<std::vector<bool>> parse_layer_pattern(const std::string& text, std::int64_t layers);

/// Returns the shortest text of the second form.
std::string layer_pattern_text(const std::vector<bool>& pattern);

}  // namespace orrery::interop
