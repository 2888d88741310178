// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace orrery::machine {

/// Returns `written`, one value a line (to_yaml), with the comments of the YAML text `source`: each
/// beside or above the value that it stood beside or above. Those of values that are not written
/// any more stand above what follows, or at the end. Both are of one schema and can be parsed.
std::string with_comments(const std::string& written, const std::string& source);

}  // namespace orrery::machine
