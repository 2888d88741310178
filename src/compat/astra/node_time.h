// SPDX-License-Identifier: Apache-2.0
/// Node times say what a node does when it starts, and how long it takes if that is known then.
#pragma once

#include <cstdint>

#include "base/units.h"
#include "compat/astra/config.h"
#include "compat/astra/phase.h"
#include "compat/astra/quirks.h"
#include "workload/chakra/trace.h"

namespace orrery::astra {

enum class Issue : std::uint8_t { nothing, timed, memory, collective, send, receive };

/// Returns how a node is issued. `replay`: every node is timed. With Quirk::one_communication a
/// broadcast is, too.
Issue issue_of(const chakra::Node& node, bool replay, const Quirks& quirks);

/// Returns, for timed nodes, the recorded duration, at least 1 ns. GPU compute under roofline:
///   floor(operations / min(peak, M operations / bytes)), M = local memory's bandwidth;
/// without bytes operations / peak. What runs on a GPU of another speed than 1 takes
/// floor(time / speed), at least 1 ns.
Time node_time(const chakra::Node& node, const System& system, double speed = 1);

PhaseType phase_type_of(chakra::CollectiveType type);

}  // namespace orrery::astra
