// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "machine/faults/faults.h"
#include "machine/machine.h"

namespace orrery::simulate {

/// Returns what of a machine may break. A node is a block of its innermost dimension, or a device
/// where there is one dimension only. Links have the names of the machine's `topology`, or without
/// one of its switched dimensions:
///
///   rank3->NAME   up to the switch of dimension NAME     NAME->rank3   down from it
///   rank3--NAME   both
///
/// `links_change`: whether the network model, called `network`, can change links while it runs.
/// `machine` must outlive it.
faults::Places fault_places(const machine::Machine& machine, std::string_view network,
                            bool links_change);

}  // namespace orrery::simulate
