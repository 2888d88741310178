// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "mpi_calls/record.h"

namespace orrery::mpi_calls {

/// Returns the calls of `whole`, a program that is known with them, at their places in the code of
/// another program that is alike, as the two of one plan are.
///
/// Lines are compared without white space around them. Those that stand once in each and whose
/// order agrees (the longest such sequence) are the same; so are equal lines that follow one of
/// them, or precede it, without a gap. A call goes behind the line that it stood behind, or the
/// last one before it that the other program has; an expression within a line that it lacks is left
/// out. Empty where over half of the lines of `whole` are not the same as any: another program.
std::vector<Label> complete_like(const Record& whole, const Record& code);

}  // namespace orrery::mpi_calls
