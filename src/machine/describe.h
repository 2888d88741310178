// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "machine/machine.h"

namespace orrery::machine {

/// Every value of a machine but names as (dotted field, value with unit), in the order of its file;
/// entries of lists by their names: "network.nvlink.bandwidth".
std::vector<std::pair<std::string, std::string>> fields_of(const Machine& machine);

/// Returns the origin of a field: that of its longest prefix in Machine::origins, or "".
std::string origin_of(const Machine& machine, const std::string& field);

/// Returns the first word of that origin ("measured", "fitted", "inferred"), "not stated" without.
std::string origin_word(const Machine& machine, const std::string& field);

/// The table of `orrery show machine`: field, value and the number of its origin, origins below.
std::string describe(const Machine& machine);

}  // namespace orrery::machine
