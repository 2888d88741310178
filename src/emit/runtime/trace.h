// SPDX-License-Identifier: Apache-2.0
/// The communication that this rank has started, seen by MPI's profiling interface.
#pragma once

#include <string>
#include <vector>

namespace trace {

/// One line per call, in order: "all_reduce GROUP ELEMENTS", "send to PEER ELEMENTS".
const std::vector<std::string>& lines();
/// When each call was started, in seconds of MPI_Wtime.
const std::vector<double>& starts();

}  // namespace trace
