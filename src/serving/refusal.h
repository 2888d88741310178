// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "serving/serve.h"

namespace orrery::serving {

/// Returns why not even the request with the shortest prompt can be served. `sent`: all of them;
/// none where clients of their own sent them.
std::string why_none(const Run& run, const std::vector<requests::Request>& sent);

}  // namespace orrery::serving
