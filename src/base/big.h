// SPDX-License-Identifier: Apache-2.0
/// $ORRERY_BIG, which --big sets, lifts the limits of files.
#pragma once

#include <cstdlib>

namespace orrery {

inline bool limits_lifted() {
  return std::getenv("ORRERY_BIG") != nullptr;
}

}  // namespace orrery
