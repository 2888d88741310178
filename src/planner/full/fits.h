// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "planner/full/space.h"

namespace orrery::full {

/// Whether the plan fits the task's machine, and the memory of its fullest stage, to the byte.
std::pair<bool, Bytes> memory_of(const Task& task, const plan::Plan& plan);

}  // namespace orrery::full
