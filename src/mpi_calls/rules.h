// SPDX-License-Identifier: Apache-2.0
/// MPI calls that any program has, by rule: no learning, no model of language.
#pragma once

#include <vector>

#include "mpi_calls/record.h"

namespace orrery::mpi_calls {

/// Adds to the code of a record, in main:
///
///   MPI_Init                behind the declarations; of argc and argv where main has them
///   MPI_Comm_rank, _size    behind it, into variables named as ranks and sizes usually are
///                           (rank, myid, my_rank ...; size, nprocs, world_size ...), if declared
///   MPI_Finalize            before the last return of main, or at its end
///
/// Nothing where there is no main. Ignores: what MPI_Init may not come behind, other communicators.
std::vector<Label> complete_by_rules(const Record& record);

}  // namespace orrery::mpi_calls
