// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "workload/plan/plan.h"

namespace orrery::full {

/// "tp 8 pp 16 dp 128 interleaved x 2, mb 1, zero 1, ...": what tells plans of one search apart.
std::string summary(const plan::Plan& plan);

}  // namespace orrery::full
