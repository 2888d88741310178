// SPDX-License-Identifier: Apache-2.0
#include "mpi/tempi/from_mpi.h"

#include <vector>

namespace orrery::tempi {
namespace {

using datatype::Datatype;
using Longs = std::vector<std::int64_t>;

datatype::Bounds bounds_of(MPI_Datatype type) {
  MPI_Aint lower = 0;
  MPI_Aint extent = 0;
  MPI_Type_get_extent(type, &lower, &extent);
  return {lower, extent};
}

bool is_named(MPI_Datatype type) {
  int integers = 0;
  int addresses = 0;
  int types = 0;
  int combiner = 0;
  MPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner);
  return combiner == MPI_COMBINER_NAMED || combiner == MPI_COMBINER_F90_REAL ||
         combiner == MPI_COMBINER_F90_COMPLEX || combiner == MPI_COMBINER_F90_INTEGER;
}

/// Returns a basic type; pairs of a value and an int have a gap where the value is not of an int's
/// size.
std::optional<Datatype> basic(MPI_Datatype type) {
  int size = 0;
  MPI_Type_size(type, &size);
  const datatype::Bounds bounds = bounds_of(type);
  if (bounds.lower == 0 && bounds.extent == size) {
    return datatype::named(size, size);
  }
  for (const MPI_Datatype pair : {MPI_DOUBLE_INT, MPI_LONG_INT, MPI_SHORT_INT, MPI_LONG_DOUBLE_INT,
                                  MPI_FLOAT_INT, MPI_2INT}) {
    if (type == pair) {
      const auto value = size - static_cast<std::int64_t>(sizeof(int));
      const std::int64_t second =
          type == MPI_SHORT_INT ? static_cast<std::int64_t>(alignof(int)) : value;
      return Datatype{bounds, {}, {{0, value}, {second, static_cast<std::int64_t>(sizeof(int))}}};
    }
  }
  return std::nullopt;
}

/// Contents are what a constructor was given; frees what it was handed.
struct Contents {
  explicit Contents(MPI_Datatype type) {
    int integer_count = 0;
    int address_count = 0;
    int type_count = 0;
    MPI_Type_get_envelope(type, &integer_count, &address_count, &type_count, &combiner);
    integers.resize(static_cast<std::size_t>(integer_count));
    addresses.resize(static_cast<std::size_t>(address_count));
    types.resize(static_cast<std::size_t>(type_count));
    MPI_Type_get_contents(type, integer_count, address_count, type_count, integers.data(),
                          addresses.data(), types.data());
  }
  ~Contents() {
    for (MPI_Datatype& type : types) {
      if (!is_named(type)) {
        MPI_Type_free(&type);
      }
    }
  }
  Contents(const Contents&) = delete;
  Contents& operator=(const Contents&) = delete;

  std::span<const int> ints(std::size_t first, int count) const {
    return std::span(integers).subspan(first, static_cast<std::size_t>(count));
  }
  Longs lengths() const {
    const auto given = ints(1, integers[0]);
    return {given.begin(), given.end()};
  }
  /// Displacements in bytes, of integers in units of `unit` from `first` on.
  Longs scaled(std::size_t first, std::int64_t unit) const {
    Longs bytes;
    for (const int displacement : ints(first, integers[0])) {
      bytes.push_back(displacement * unit);
    }
    return bytes;
  }

  int combiner = 0;
  std::vector<int> integers;
  std::vector<MPI_Aint> addresses;
  std::vector<MPI_Datatype> types;
};

std::optional<Datatype> structure_of(const Contents& contents) {
  std::vector<Datatype> parts;
  for (const MPI_Datatype part : contents.types) {
    auto made = from_mpi(part);
    if (!made) {
      return std::nullopt;
    }
    parts.push_back(std::move(*made));
  }
  const Longs displacements(contents.addresses.begin(), contents.addresses.end());
  return datatype::structure(contents.lengths(), displacements, parts);
}

std::optional<Datatype> derived(const Contents& contents, const Datatype& old) {
  const std::vector<int>& ints = contents.integers;
  const std::int64_t extent = old.bounds.extent;
  const auto count = ints.empty() ? std::size_t{0} : static_cast<std::size_t>(ints[0]);
  const Longs addresses(contents.addresses.begin(), contents.addresses.end());
  switch (contents.combiner) {
    case MPI_COMBINER_DUP:
      return old;
    case MPI_COMBINER_CONTIGUOUS:
      return datatype::contiguous(ints[0], old);
    case MPI_COMBINER_VECTOR:
      return datatype::hvector(ints[0], ints[1], ints[2] * extent, old);
    case MPI_COMBINER_HVECTOR:
      return datatype::hvector(ints[0], ints[1], addresses[0], old);
    case MPI_COMBINER_INDEXED:
      return datatype::hindexed(contents.lengths(), contents.scaled(1 + count, extent), old);
    case MPI_COMBINER_HINDEXED:
      return datatype::hindexed(contents.lengths(), addresses, old);
    case MPI_COMBINER_INDEXED_BLOCK:
      return datatype::hindexed(Longs(count, ints[1]), contents.scaled(2, extent), old);
    case MPI_COMBINER_HINDEXED_BLOCK:
      return datatype::hindexed(Longs(count, ints[1]), addresses, old);
    case MPI_COMBINER_SUBARRAY: {
      const auto order = ints[3 * count + 1] == MPI_ORDER_C ? datatype::ArrayOrder::c
                                                            : datatype::ArrayOrder::fortran;
      return datatype::subarray(contents.ints(1, ints[0]), contents.ints(1 + count, ints[0]),
                                contents.ints(1 + 2 * count, ints[0]), order, old);
    }
    case MPI_COMBINER_RESIZED:
      return datatype::resized({addresses[0], addresses[1]}, old);
    default:
      return std::nullopt;
  }
}

}  // namespace

std::optional<Datatype> from_mpi(MPI_Datatype type) {
  if (is_named(type)) {
    return basic(type);
  }
  const Contents contents(type);
  std::optional<Datatype> made;
  if (contents.combiner == MPI_COMBINER_STRUCT) {
    made = structure_of(contents);
  } else if (contents.types.size() == 1) {
    if (const auto old = from_mpi(contents.types[0])) {
      made = derived(contents, *old);
    }
  }
  if (!made) {
    return std::nullopt;
  }
  return datatype::canonical(datatype::resized(bounds_of(type), std::move(*made)));
}

}  // namespace orrery::tempi
