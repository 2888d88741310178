// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "datatype/datatype.h"

namespace orrery::datatype {

/// A Packer copies elements of a type between their places and a buffer without gaps, in the order
/// of MPI_Pack. The work per call is that of the copies: loops and the kernel of the innermost two
/// are chosen when it is made.
///
/// Kernels are loops over blocks of constant size (1 to 128 bytes) or of any size. Where the outer
/// of the innermost two streams has the smaller stride (a transpose), both loops run in tiles, so
/// that cache lines of both sides are used whole; source and target are permuted alike, so the
/// packed order stays.
///
/// Requires, of unpack(): blocks that do not overlap (MPI 4.0, 5.1.11).
class Packer {
 public:
  /// Packs `count` elements of the type.
  Packer(const Datatype& type, std::int64_t count);

  std::int64_t bytes() const { return bytes_; }
  /// Returns the bytes of the innermost block: what a cost model goes by. 0 without bytes.
  std::int64_t block() const;
  /// Returns iterations of the outermost stream: the pieces that slice() cuts.
  std::int64_t pieces() const;
  /// Returns a packer of the pieces [first, last) alone, which follow each other when packed.
  Packer slice(std::int64_t first, std::int64_t last) const;

  /// `typed` is the address that displacements count from.
  void pack(const std::byte* typed, std::byte* packed) const;
  void unpack(const std::byte* packed, std::byte* typed) const;

 private:
  using Kernel = void (*)(std::byte* typed, std::byte* packed, const Packer& packer);
  template <bool kPack>
  struct Kernels;

  void choose();
  std::byte* walk(Kernel kernel, std::size_t level, std::byte* typed, std::byte* packed) const;

  Datatype type_;
  std::int64_t bytes_ = 0;
  std::int64_t inner_bytes_ = 0;  ///< packed by one call of a kernel
  Stream outer_;                  ///< the innermost two streams
  Stream inner_;
  std::size_t walked_ = 0;  ///< streams around them
  Kernel pack_ = nullptr;
  Kernel unpack_ = nullptr;
};

}  // namespace orrery::datatype
