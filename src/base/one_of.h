// SPDX-License-Identifier: Apache-2.0
/// Messages expect "one of a, b, c (did you mean 'a'?)" where a name is none of those known.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/names.h"

namespace orrery {

/// Returns the names (`enumerated`), and the one closest to `found`.
inline std::string one_of(std::string_view found, const std::vector<std::string>& names) {
  return "one of " + enumerated(names) + did_you_mean(found, names);
}

/// Returns the names of an enumeration so.
template <class E>
std::string one_of(std::string_view found) {
  return "one of " + all_names<E>() + did_you_mean(found, names_of<E>());
}

}  // namespace orrery
