// SPDX-License-Identifier: Apache-2.0
/// Parameters between braces: ${X:-d}, ${X%p}, ${#X}, ${X[@]}. Internal to this folder.
#pragma once

#include <string_view>
#include <vector>

#include "shell/expand.h"

namespace orrery::shell {

struct Expanded {
  std::vector<Word> items;
  bool list = false;  ///< $@ or ${X[@]}: a field an item where it is quoted
};

/// Expands a parameter. `inner`: what is between the braces, or a bare name.
Expanded expand_parameter(Scope& scope, std::string_view inner, int line, bool quoted);

}  // namespace orrery::shell
