// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mpi.h>

#include <optional>

#include "datatype/datatype.h"

namespace orrery::tempi {

/// Returns what the datatype covers, in canonical form; nothing for what has no nest of few blocks
/// (darray, thousands of irregular blocks), which is left to the library.
///
/// Read from MPI_Type_get_envelope and MPI_Type_get_contents, whose handles are freed. Bounds of
/// structs are the library's, which may pad them; all others follow from MPI's rules.
std::optional<datatype::Datatype> from_mpi(MPI_Datatype type);

}  // namespace orrery::tempi
