// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"

namespace orrery::cli {

/// `orrery show topology`: sizes, diameter, bisection; or its picture.
Result<std::string> show_topology(const std::string& name, bool json, bool svg, Error& mistakes);

}  // namespace orrery::cli
