// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "base/result.h"

namespace orrery::cli {

/// `orrery plan --layer-costs FILE`: the fastest strategy of every layer by costs that somebody
/// measured. `most_memory`: the text of --max-memory.
Result<std::string> plan_layers(const std::string& file,
                                const std::optional<std::string>& most_memory, bool json,
                                Error mistakes);

}  // namespace orrery::cli
