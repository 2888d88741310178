// SPDX-License-Identifier: Apache-2.0
/// Phases that carry next to nothing, such as the sum of a gradient norm over a tree: where ranks
/// fold, those whose members do not send alike run apart from all other messages.
#pragma once

#include "base/units.h"
#include "simulate/message_plans.h"

namespace orrery::simulate {

/// What a phase apart may take of any link, its messages one after the other: so much may its
/// absence speed up others, and theirs it.
inline constexpr Time kMostApart = 10_ns;

bool may_run_apart(const PhasePlan& phase);

/// From the first message to the end of the last, with nothing else on the links: max-min fair.
Time time_apart(const PhasePlan& phase);

}  // namespace orrery::simulate
