// SPDX-License-Identifier: Apache-2.0
/// The six pairs of fused operators, base against fused, on the processes of an MPI job.
#pragma once

#include <cstdint>

namespace orrery::mpi {

struct PairRun {
  std::int64_t tokens = 1024;
  std::int64_t width = 1024;
  std::int64_t copies = 2;
  std::int64_t dp = 2;
  int repeat = 20;
  bool json = false;
};

/// Runs every pair and prints a line of each. Returns false if a result differs from the reference
/// executor's. All processes call it together.
bool run_pairs(const PairRun& sizes);

}  // namespace orrery::mpi
