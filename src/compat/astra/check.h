// SPDX-License-Identifier: Apache-2.0
/// These checks find what makes a run impossible, before it starts.
#pragma once

#include "base/result.h"
#include "compat/astra/communicators.h"
#include "compat/astra/planner.h"
#include "compat/astra/run.h"

namespace orrery::astra {

/// Sizes that do not fit, back-ends that do not do the network, nodes without what their kind
/// needs.
Error check_input(const RunInput& input, const RunOptions& options, const Wires& wires);

/// Collectives that an implementation or a quirk rules out, one per program, node and cause.
Error check_collectives(const RunInput& input, const RunOptions& options,
                        Communicators& communicators, const Planner& planner);

}  // namespace orrery::astra
