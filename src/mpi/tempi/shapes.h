// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mpi.h>

#include <cstdint>
#include <string>
#include <vector>

namespace orrery::tempi {

/// A Shape is a committed datatype that programs exchange, with the count that they exchange.
struct Shape {
  std::string name;
  MPI_Datatype type = MPI_DATATYPE_NULL;
  int count = 1;
};

/// Returns the shapes that packing is measured on: faces and edges of a halo, vectors of small and
/// large blocks, slices of a KV cache and of a weight matrix, a transpose. Each is freed by the
/// caller (MPI_Type_free).
std::vector<Shape> measured_shapes();

/// Returns the same random datatype for the same seed: a nest of up to four constructors over basic
/// types and pairs, with a count; spans at most some 10 kB on each side of its buffer.
Shape random_shape(std::uint64_t seed);

}  // namespace orrery::tempi
