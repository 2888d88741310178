// SPDX-License-Identifier: Apache-2.0
/// Says which bytes an MPI datatype covers, in which order, as a small nest of loops.
///
///   for every iteration of streams[0], streams[1], ... (outermost first)
///     for every block, in order
///       the bytes [sum of iteration * stride + offset, ... + bytes)
///
/// Displacements are signed and count from the address of the buffer. Lower bound and extent stand
/// at the root, so that what folds inside never changes where the next element begins.
/// Source: MPI 4.0, chapter 5; the form follows TEMPI (Pearson et al., HPDC 2021), of which
/// a chain of streams over one block is the StridedBlock.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace orrery::datatype {

/// A Block is a run of bytes without a gap.
struct Block {
  std::int64_t offset = 0;
  std::int64_t bytes = 0;

  friend bool operator==(const Block&, const Block&) = default;
};

/// A Stream repeats what is inside of it, `stride` bytes apart.
struct Stream {
  std::int64_t stride = 0;
  std::int64_t count = 1;

  friend bool operator==(const Stream&, const Stream&) = default;
};

/// A Bounds is where a type begins and how far the next element of it lies (MPI_Type_get_extent).
struct Bounds {
  std::int64_t lower = 0;
  std::int64_t extent = 0;

  std::int64_t upper() const { return lower + extent; }
  friend bool operator==(const Bounds&, const Bounds&) = default;
};

struct Datatype {
  Bounds bounds;
  std::vector<Stream> streams;  ///< outermost first
  std::vector<Block> blocks;    ///< inside of the innermost stream, in the order of packing

  /// Returns the packed bytes of one element (MPI_Type_size).
  std::int64_t size() const;
  friend bool operator==(const Datatype&, const Datatype&) = default;
};

/// Types whose irregular parts (indexed, struct) take more blocks than this have no nest: their
/// constructors return nothing, and the caller leaves them to the library.
inline constexpr std::int64_t kMostBlocks = 4096;

enum class ArrayOrder : std::uint8_t { c, fortran };

/// Build types as the constructors of MPI do, with displacements and strides in bytes. They require
/// counts and lengths of 0 or more and products within 63 bits. Types without bytes have bounds of
/// zero, as in MPI.
Datatype named(std::int64_t bytes, std::int64_t extent);
Datatype contiguous(std::int64_t count, const Datatype& old);
Datatype hvector(std::int64_t count, std::int64_t length, std::int64_t stride, const Datatype& old);
/// Returns a subarray whose dimensions stand in the order of the array; requires equal lengths of
/// the three.
Datatype subarray(std::span<const int> sizes, std::span<const int> subsizes,
                  std::span<const int> starts, ArrayOrder order, const Datatype& old);
Datatype resized(Bounds bounds, Datatype old);
std::optional<Datatype> hindexed(std::span<const std::int64_t> lengths,
                                 std::span<const std::int64_t> displacements, const Datatype& old);
/// Returns a structure whose bounds are without the padding that an MPI library may add; who needs
/// it resizes.
std::optional<Datatype> structure(std::span<const std::int64_t> lengths,
                                  std::span<const std::int64_t> displacements,
                                  std::span<const Datatype> types);

/// Returns `count` elements of the type, each an extent after the one before.
Datatype repeated(std::int64_t count, const Datatype& type);

/// Returns the same bytes in the same order with the fewest loops. Passes, until none applies:
///
///   empty      a stream of count 0, or no bytes  -> neither streams nor blocks
///   elision    a stream of count 1               -> none; blocks keep their offsets
///   merge      block i ends where i+1 begins     -> one block
///   regular    equal blocks at equal distances   -> a stream over one
///   fold       stride == bytes of the one block  -> a block of count * bytes
///   flatten    stride == inner count * stride    -> one stream of both counts
///
/// Streams are never swapped: that changes the order of packing (six_cases in the tests). Bounds
/// stay as they are.
Datatype canonical(Datatype type);

}  // namespace orrery::datatype
