// SPDX-License-Identifier: Apache-2.0
/// Optimizers by the names that training programs have for them. Internal to this folder.
#pragma once

#include <optional>
#include <string_view>

#include "workload/plan/choices.h"

namespace orrery::interop {

/// Returns the rule that a name in lower case means ("paged_adamw_8bit", "dist_muon", "fusedlion");
/// nothing: no plan has it.
std::optional<plan::Optimizer> optimizer_named(std::string_view name);

}  // namespace orrery::interop
