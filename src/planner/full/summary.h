// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "workload/plan/plan.h"

namespace orrery::full {

/// Returns "tp 8 pp 16 dp 128 interleaved x 2, mb 1, zero 1, ...": what tells plans of one search
/// apart.
std::string summary(const plan::Plan& plan);

/// Returns what words of these summaries mean that are neither degrees nor fields, a line each,
/// once: "full 17: recomputation in the first 17 layers of every chunk".
std::vector<std::string> meanings(const std::vector<plan::Plan>& plans);

}  // namespace orrery::full
