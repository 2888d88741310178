// SPDX-License-Identifier: Apache-2.0
/// Says which ranks do the same at the same times.
#pragma once

#include <string>
#include <vector>

#include "compat/astra/communicators.h"
#include "compat/astra/planner.h"
#include "compat/astra/run.h"

namespace orrery::astra {

/// Returns why not all ranks are equal; empty if they are. They are when all run one program of
/// computation, collectives of the world or of its lines (also given as groups) whose algorithms
/// look the same from everywhere, and remote memory that nobody shares: then the network has an
/// automorphism (a rotation or reflection of each dimension's coordinates) that maps any rank onto
/// any other and every message onto one of the same time.
std::vector<std::string> reasons_against_folding(const RunInput& input, const RunOptions& options,
                                                 Communicators& communicators,
                                                 const Planner& planner);

/// Returns why ranks cannot be told apart by colours (colours.h) either; empty if they can.
std::vector<std::string> reasons_against_colours(const RunInput& input, const RunOptions& options);

}  // namespace orrery::astra
