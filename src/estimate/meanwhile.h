// SPDX-License-Identifier: Apache-2.0
/// How often stages use one another's links, from a replay in which they do not.
///
///   passes   a stage makes transfers of a lane for L of the step's time T: another stage meets one
///            with probability L / T
///   the end  transfers of the last pass and after it, R in all, begin when the stage's last pass
///            ends, d earlier or later than that of another stage: they meet for 1 - d/R of them
///
/// Only where groups of several stages cross the same links of a ring, torus or mesh.
#pragma once

#include "estimate/replay.h"

namespace orrery::estimate {

Meanwhile meanwhile_of(const PreparedPlan& plan, const ReplayResult& run);

}  // namespace orrery::estimate
