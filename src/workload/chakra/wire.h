// SPDX-License-Identifier: Apache-2.0
/// `.et` -> records. Not read with protobuf's classes, which allocate for every attribute; tests
/// hold the two to be equal.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "workload/chakra/byte_window.h"
#include "workload/chakra/file_shape.h"
#include "workload/chakra/mistakes.h"
#include "workload/chakra/program_builder.h"
#include "workload/chakra/record.h"

namespace orrery::chakra {

/// Mistakes name the record and its first byte: a length beyond the end of the file, a varint of
/// more than 10 bytes, a field that ends after its message or has another wire type than the
/// schema says, text that is not UTF-8, a known attribute given twice, a version other than '' and
/// 0.0.4, which 1.0.0 equals. Unknown fields are skipped, as protobuf does.
class WireReader {
 public:
  /// Makes a reader, which both must outlive.
  WireReader(ByteWindow& bytes, Mistakes& mistakes) : bytes_(bytes), mistakes_(mistakes) {}

  /// Reads the GlobalMetadata, first of all. False after a mistake that leaves nothing to read.
  bool read_metadata();
  /// Reads the next node; false at the end, or where the rest of the file cannot be read. Records
  /// that are malformed are skipped (see complete).
  bool next(NodeRecord& record);
  /// False when a record was malformed, so that nodes are missing.
  bool complete() const { return complete_; }
  /// Bytes of the record read last, which starts at the window's position.
  std::size_t length() const { return length_; }

 private:
  bool next_bytes(std::string_view& record);
  void malformed(std::string_view field, std::string found, std::string expected);

  ByteWindow& bytes_;
  Mistakes& mistakes_;
  std::uint64_t number_ = 0;  ///< of the record being read, from 0
  std::uint64_t start_ = 0;   ///< its first byte
  std::size_t length_ = 0;    ///< bytes of the record being read, not yet skipped
  bool complete_ = true;
};

/// Reads a whole `.et` file, from begin() of the builder to finish(), or to what cannot be read.
void read_et(ByteWindow& bytes, ProgramBuilder& builder, FileShape& shape, Mistakes& mistakes);

}  // namespace orrery::chakra
