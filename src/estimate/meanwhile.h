// SPDX-License-Identifier: Apache-2.0
/// How often stages use one another's links, from a replay in which they do not.
///
///   Of a lane, over pairs of stages: the time in which both transfer over the time in which one
///   does. Stages in step with one another meet all the time or never, whatever the shares of the
///   step in which they transfer.
///
/// Only where groups of several stages cross the same links of a ring, torus or mesh.
#pragma once

#include "estimate/replay.h"

namespace orrery::estimate {

Meanwhile meanwhile_of(const ReplayResult& run);

}  // namespace orrery::estimate
