// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace CLI {
class App;
}  // namespace CLI

namespace orrery::cli {

/// Mistakes of files that a command writes (`outputs`: their flags): a folder that cannot be
/// written, and a file that another argument names, too.
Error mistaken_outputs(const CLI::App& command, const std::vector<std::string>& outputs);

}  // namespace orrery::cli
