// SPDX-License-Identifier: Apache-2.0
/// Conditions of [ ] and [[ ]]. Internal to this folder.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace orrery::shell {

enum class Truth : std::uint8_t { no, yes, unknown };

constexpr Truth truth(bool value) {
  return value ? Truth::yes : Truth::no;
}
constexpr Truth negated(Truth value) {
  return value == Truth::unknown ? value : truth(value == Truth::no);
}

struct Condition {
  Truth truth = Truth::unknown;
  bool asks_files = false;  ///< a file or folder is tested: it is taken to be there
};

/// Returns the condition that words state. `words`: expanded, without the brackets. `patterns`: the
/// right side of = and == is a pattern.
Condition condition_of(const std::vector<std::string>& words, bool patterns);

}  // namespace orrery::shell
