// SPDX-License-Identifier: Apache-2.0
/// Python's pickle format as far as it is plain data.
#pragma once

#include <string>
#include <string_view>

#include "base/config_node.h"

namespace orrery::diagnose {

/// Reads None, booleans, numbers, strings, lists, tuples and dictionaries with strings as keys, of
/// protocols 2 to 5, as the same document in JSON would be read. Refused: what would make Python
/// import or call something (nothing is ever executed), truncated files, nesting deeper than 64,
/// values that take more memory than 20 times the file and 64 MiB, or than 2 GiB. Source: the
/// opcodes of Python's pickletools.
Result<ConfigNode> parse_pickle(std::string_view bytes, const std::string& file);

}  // namespace orrery::diagnose
