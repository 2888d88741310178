// SPDX-License-Identifier: Apache-2.0
/// The communication that this rank has started, seen by MPI's profiling interface.
#pragma once

#include <string>

namespace trace {

/// Calls of this rank that differ from the lines "RANK CALL" of a file, once per repetition. A call
/// is "all_reduce GROUP ELEMENTS" or "send PEER ELEMENTS"; the first difference is printed.
long long differences(const std::string& file, int rank, int repeat);

/// Writes PREFIX.RANK.txt: when each call was started, in seconds since `begin` of MPI_Wtime.
void write(const std::string& prefix, int rank, double begin);

}  // namespace trace
