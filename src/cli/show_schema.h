// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"

namespace orrery::cli {

/// `orrery show schema`: the JSON schema of a command's --json, of rows (`rows`), or of a file that
/// people write (`machine-file`, `plan-file`, `engine-file`). They are shipped beside the
/// configurations. Mistakes: an unknown name, with those that there are.
Result<std::string> show_schema(const std::string& name);

}  // namespace orrery::cli
