// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "machine/machine.h"
#include "planner/full/space.h"

namespace orrery::cli {

/// Reads --fix and --only of `orrery plan`, each "field=value", into the task; `fixes` is the flag
/// that mistakes in `fix` name. Mistakes: unknown fields, bad values, a field that is said twice.
void read_choices(const std::vector<std::string>& fix, const std::vector<std::string>& only,
                  full::Task& task, Error& mistakes, const std::string& fixes = "--fix");

/// Returns the bytes of a device that stay free: --reserve, 2 GiB where it is not given, or what
/// --max-memory leaves of the device's.
Bytes read_reserve(const std::optional<std::string>& reserve,
                   const std::optional<std::string>& most_memory, const machine::Machine& machine,
                   Error& mistakes);

/// Gives every device of the task its share of --power-budget. Mistakes: what is no power, and what
/// the machine's devices cannot be held to.
void hold_power(const std::optional<std::string>& power_budget, full::Task& task, Error& mistakes);

/// Returns "--save and --top": those that were given.
std::string listed_flags(const std::vector<std::pair<bool, std::string>>& flags);

/// Takes the batch that `orrery simulate` has with the same flags, and says so. With mistakes it
/// does nothing.
void use_default_batch(full::Task& task, const Error& mistakes);

}  // namespace orrery::cli
