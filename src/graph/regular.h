// SPDX-License-Identifier: Apache-2.0
/// Digits of rank numbers that say what lists of ranks say: ranks in such families fold
/// (simulate/fold.h), listed ones do not.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "graph/members.h"

namespace orrery::graph {

/// Digits of `value_of`'s index, innermost first, that tell equal values: ranks that agree in them
/// have the same. From the innermost digit on, the longest digit that does not matter is left out,
/// wherever there is one; the whole index where none is. Requires an entry at least.
std::vector<Digit> telling_digits(const std::vector<std::int32_t>& value_of);

/// Returns the communicators (disjoint, each ascending and of two ranks or more) as a family by
/// digits, or by `only` some values of `roles`; nullopt where they are neither. Ranks in none of
/// them may be given communicators among themselves.
std::optional<Members> members_by_digits(const std::vector<std::vector<std::int64_t>>& lists,
                                         const std::vector<Digit>& roles, std::int64_t ranks);

}  // namespace orrery::graph
