// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "base/result.h"
#include "machine/machine.h"

namespace orrery::machine {

/// Checks that closed forms on the dimensions say all about the network, for `who`, which prices by
/// them: the shared links of a topology would be free there. Mistakes: a machine with a topology.
Result<void> check_dimensions_only(const Machine& machine, std::string_view who);

}  // namespace orrery::machine
