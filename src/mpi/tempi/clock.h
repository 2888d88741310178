// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mpi.h>

#include <algorithm>
#include <limits>

namespace orrery::tempi {

/// Returns the least time of one call, in seconds, over `rounds` batches of `calls`: what else a
/// host does only adds to it.
template <class Call>
double least_seconds(int rounds, int calls, Call&& call) {
  double least = std::numeric_limits<double>::infinity();
  for (int round = 0; round < rounds; ++round) {
    const double begin = MPI_Wtime();
    for (int i = 0; i < calls; ++i) {
      call();
    }
    least = std::min(least, (MPI_Wtime() - begin) / calls);
  }
  return least;
}

/// Returns how many calls make a batch of 200 microseconds, of which the clock's steps are little;
/// 1 to 1000.
template <class Call>
int calls_of_batch(Call&& call) {
  constexpr double kBatch = 200e-6;
  call();
  const double one = std::max(least_seconds(2, 1, call), 1e-9);
  return static_cast<int>(std::clamp(kBatch / one, 1.0, 1000.0));
}

}  // namespace orrery::tempi
