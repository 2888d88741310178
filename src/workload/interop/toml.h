// SPDX-License-Identifier: Apache-2.0
/// The part of TOML 1.0 that job configurations use. Internal to this folder.
#pragma once

#include <string>
#include <string_view>

#include "base/config_node.h"

namespace orrery::interop {

/// Reads tables, dotted keys, one-line strings, numbers, booleans and arrays, as maps with the line
/// of every value. Mistakes, all at once: keys that stand twice, syntax, and what is left out:
/// dates, strings over several lines, inline tables, arrays of tables, nesting deeper than 32.
Result<ConfigNode> parse_toml(std::string_view text, const std::string& file);

}  // namespace orrery::interop
