// SPDX-License-Identifier: Apache-2.0
/// Fields of a protobuf message, one after the other, without allocating. For wire.cc only.
#pragma once

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include <cstdint>
#include <limits>
#include <string_view>

#include "workload/chakra/record.h"

namespace orrery::chakra {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;

/// What is wrong with a record; a null `expected` when nothing is.
struct Problem {
  std::string_view field;
  const char* expected = nullptr;
};

inline constexpr const char* kMalformed = "a field that ends within its message";
inline constexpr const char* kWireType = "the wire type of the schema";
inline constexpr const char* kText = "UTF-8 text without NUL";

/// Fields of one message, from the stream up to its current limit.
class FieldReader {
 public:
  FieldReader(CodedInputStream& stream, Problem& problem) : stream_(stream), problem_(problem) {}

  /// Moves to the next field; false at the end of the message and after a problem.
  bool next() {
    if (problem_.expected != nullptr) {
      return false;
    }
    tag_ = stream_.ReadTag();
    if (tag_ == 0) {
      if (!stream_.ConsumedEntireMessage()) {
        fail("", kMalformed);
      }
      return false;
    }
    return true;
  }
  int number() const { return WireFormatLite::GetTagFieldNumber(tag_); }

  std::uint64_t varint(std::string_view field) {
    std::uint64_t value = 0;
    if (is(WireFormatLite::WIRETYPE_VARINT, field) && !stream_.ReadVarint64(&value)) {
      fail(field, kMalformed);
    }
    return value;
  }
  std::uint32_t fixed32(std::string_view field) {
    std::uint32_t value = 0;
    if (is(WireFormatLite::WIRETYPE_FIXED32, field) && !stream_.ReadLittleEndian32(&value)) {
      fail(field, kMalformed);
    }
    return value;
  }
  std::uint64_t fixed64(std::string_view field) {
    std::uint64_t value = 0;
    if (is(WireFormatLite::WIRETYPE_FIXED64, field) && !stream_.ReadLittleEndian64(&value)) {
      fail(field, kMalformed);
    }
    return value;
  }
  /// A view into the record.
  std::string_view bytes(std::string_view field) {
    const int length = length_of(field);
    const void* at = nullptr;
    int available = 0;
    if (length <= 0) {
      return {};
    }
    stream_.GetDirectBufferPointerInline(&at, &available);
    if (available < length || !stream_.Skip(length)) {
      fail(field, kMalformed);
      return {};
    }
    return {static_cast<const char*>(at), static_cast<std::size_t>(length)};
  }
  std::string_view text(std::string_view field) {
    const std::string_view found = bytes(field);
    if (!is_text(found)) {
      fail(field, kText);
      return {};
    }
    return found;
  }
  /// A message of its own: `read(fields)` reads all of its fields.
  template <class Read>
  void message(std::string_view field, Read read) {
    const int length = length_of(field);
    if (problem_.expected != nullptr) {
      return;
    }
    if (length > stream_.BytesUntilLimit()) {
      fail(field, kMalformed);
      return;
    }
    const auto limit = stream_.PushLimit(length);
    FieldReader inner(stream_, problem_);
    read(inner);
    stream_.PopLimit(limit);
    if (problem_.expected != nullptr && problem_.field.empty()) {
      problem_.field = field;
    }
  }
  /// A repeated varint: packed or one at a time.
  template <class Take>
  void varints(std::string_view field, Take take) {
    if (WireFormatLite::GetTagWireType(tag_) == WireFormatLite::WIRETYPE_VARINT) {
      take(varint(field));
      return;
    }
    const int length = length_of(field);
    if (problem_.expected != nullptr || length > stream_.BytesUntilLimit()) {
      fail(field, kMalformed);
      return;
    }
    const auto limit = stream_.PushLimit(length);
    while (stream_.BytesUntilLimit() > 0) {
      std::uint64_t value = 0;
      if (!stream_.ReadVarint64(&value)) {
        fail(field, kMalformed);
        break;
      }
      take(value);
    }
    stream_.PopLimit(limit);
  }
  void skip() {
    if (!WireFormatLite::SkipField(&stream_, tag_)) {
      fail("", kMalformed);
    }
  }

 private:
  bool is(WireFormatLite::WireType type, std::string_view field) {
    if (WireFormatLite::GetTagWireType(tag_) == type) {
      return true;
    }
    fail(field, kWireType);
    return false;
  }
  /// Length of a length-delimited field, within int.
  int length_of(std::string_view field) {
    std::uint32_t length = 0;
    if (!is(WireFormatLite::WIRETYPE_LENGTH_DELIMITED, field)) {
      return 0;
    }
    if (!stream_.ReadVarint32(&length) ||
        length > static_cast<std::uint32_t>(std::numeric_limits<int>::max())) {
      fail(field, kMalformed);
      return 0;
    }
    return static_cast<int>(length);
  }
  void fail(std::string_view field, const char* expected) {
    if (problem_.expected == nullptr) {
      problem_ = {field, expected};
    }
  }

  CodedInputStream& stream_;
  Problem& problem_;
  std::uint32_t tag_ = 0;
};

}  // namespace orrery::chakra
