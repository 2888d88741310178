// SPDX-License-Identifier: Apache-2.0
/// Gaps between lines of code, as completers compare them. Private to mpi_calls.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "mpi_calls/outline.h"

namespace orrery::mpi_calls {

/// Hashes of what is around a gap, ascending, without repetition.
using Features = std::vector<std::uint64_t>;

/// A gap of a program: what is around it, and the labels that stand there and rules do not give.
struct Gap {
  std::size_t program = 0;
  std::int64_t line = 0;
  Features features;
  std::vector<Label> labels;
};

/// Returns the features of the gap behind line `line` (0: before the first).
Features features_of(const Outline& outline, std::int64_t line);

/// Returns a token as it is compared: an identifier by its role, or its own name if it has none; a
/// literal text as "text"; a number as itself.
std::string shape_of(const Outline& outline, const Token& token);

}  // namespace orrery::mpi_calls
