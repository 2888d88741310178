// SPDX-License-Identifier: Apache-2.0
/// Fields of a protobuf message, one after the other. For wire.cc and file_shape.cc.
///
/// Not protobuf's CodedInputStream: its limits are pushed and popped by calls into the library, and
/// with five attributes per node, each a message, that is half of the time. Measured
/// (bench/chakra_bench): 250 ns a node with it, 160 ns so. Tests hold the two to be equal.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

#include "workload/chakra/record.h"

namespace orrery::chakra {

/// A Problem is what is wrong with a record; a null `expected` when nothing is.
struct Problem {
  std::string_view field;
  const char* expected = nullptr;
};

inline constexpr const char* kMalformed = "a field that ends within its message";
inline constexpr const char* kWireType = "the wire type of the schema";
inline constexpr const char* kText = "UTF-8 text without NUL";

enum class WireType : std::uint8_t {
  varint,
  fixed64,
  length_delimited,
  start_group,
  end_group,
  fixed32
};

class FieldReader {
 public:
  FieldReader(std::string_view message, Problem& problem)
      : at_(message.data()), end_(message.data() + message.size()), problem_(problem) {}

  /// Moves to the next field; false at the end of the message and after a problem.
  bool next() {
    if (at_ == end_ || problem_.expected != nullptr) {
      return false;
    }
    const std::uint64_t tag = take_varint("");
    type_ = static_cast<WireType>(tag & 7U);
    number_ = static_cast<std::uint32_t>(tag >> 3);
    if (tag >> 32 != 0 || number_ == 0 || (tag & 7U) > 5) {
      fail("", kMalformed);
      return false;
    }
    return problem_.expected == nullptr;
  }
  std::uint32_t number() const { return number_; }
  /// Returns what comes after the field.
  std::string_view rest() const { return {at_, static_cast<std::size_t>(end_ - at_)}; }

  std::uint64_t varint(std::string_view field) {
    return is(WireType::varint, field) ? take_varint(field) : 0;
  }
  std::uint32_t fixed32(std::string_view field) {
    return is(WireType::fixed32, field) ? take_fixed<std::uint32_t>(field) : 0;
  }
  std::uint64_t fixed64(std::string_view field) {
    return is(WireType::fixed64, field) ? take_fixed<std::uint64_t>(field) : 0;
  }
  /// Returns a view into the record.
  std::string_view bytes(std::string_view field) {
    return is(WireType::length_delimited, field) ? take_bytes(field) : std::string_view();
  }
  std::string_view text(std::string_view field) {
    const std::string_view found = bytes(field);
    if (!is_text(found)) {
      fail(field, kText);
    }
    return found;
  }
  /// Reads a repeated varint: packed or one at a time.
  template <class Take>
  void varints(std::string_view field, Take take) {
    if (type_ == WireType::varint) {
      take(take_varint(field));
      return;
    }
    FieldReader packed(bytes(field), problem_);
    while (packed.at_ != packed.end_ && problem_.expected == nullptr) {
      take(packed.take_varint(field));
    }
  }
  /// Reads a repeated number of fixed width, packed or one at a time, that nobody reads.
  void check_fixed(std::string_view field, WireType type, std::size_t width) {
    if (type_ == type) {
      skip();
    } else if (bytes(field).size() % width != 0) {
      fail(field, kMalformed);
    }
  }
  void skip() { skip_value(0); }

 private:
  bool is(WireType type, std::string_view field) {
    if (type_ == type) {
      return true;
    }
    fail(field, kWireType);
    return false;
  }
  std::uint64_t take_varint(std::string_view field) {
    if (at_ != end_ && (*at_ & 0x80) == 0) {  // most are one byte
      return static_cast<unsigned char>(*at_++);
    }
    return take_long_varint(field);
  }
  /// Takes a varint of any length; of one that has more than 64 bits the rest is dropped, as
  /// protobuf does.
  std::uint64_t take_long_varint(std::string_view field) {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 70 && at_ != end_; shift += 7) {
      const auto byte = static_cast<unsigned char>(*at_++);
      value |= static_cast<std::uint64_t>(byte & 0x7FU) << shift;
      if (byte < 0x80) {
        return value;
      }
    }
    fail(field, kMalformed);
    return 0;
  }
  template <class T>
  T take_fixed(std::string_view field) {
    T value = 0;
    if (static_cast<std::size_t>(end_ - at_) < sizeof value) {
      fail(field, kMalformed);
      return 0;
    }
    std::memcpy(&value, at_, sizeof value);  // little-endian, as every machine this is built for
    at_ += sizeof value;
    return value;
  }
  std::string_view take_bytes(std::string_view field) {
    const std::uint64_t length = take_varint(field);
    if (length > static_cast<std::uint64_t>(end_ - at_)) {
      fail(field, kMalformed);
      return {};
    }
    const std::string_view found(at_, static_cast<std::size_t>(length));
    at_ += length;
    return found;
  }
  /// Groups, which proto3 does not write any more, nest.
  void skip_value(int depth) {
    constexpr int kDeepest = 100;  // as protobuf
    switch (type_) {
      case WireType::varint:
        take_varint("");
        return;
      case WireType::fixed64:
        take_fixed<std::uint64_t>("");
        return;
      case WireType::length_delimited:
        take_bytes("");
        return;
      case WireType::fixed32:
        take_fixed<std::uint32_t>("");
        return;
      case WireType::end_group:
        fail("", kMalformed);
        return;
      case WireType::start_group:
        break;
    }
    const std::uint32_t group = number_;
    while (depth < kDeepest && next()) {
      if (type_ == WireType::end_group && number_ == group) {
        return;
      }
      skip_value(depth + 1);
    }
    fail("", kMalformed);
  }
  void fail(std::string_view field, const char* expected) {
    if (problem_.expected == nullptr) {
      problem_ = {field, expected};
    }
  }

  const char* at_;
  const char* end_;
  Problem& problem_;
  std::uint32_t number_ = 0;
  WireType type_ = WireType::varint;
};

/// Field number of Node.attr.
inline constexpr std::uint32_t kAttributeField = 10;

/// Returns the inverse of protobuf's zigzag coding of signed numbers: 0, 1, 2, 3 are 0, -1, 1, -2.
constexpr std::int64_t zigzag(std::uint64_t wire) {
  return static_cast<std::int64_t>(wire >> 1) ^ -static_cast<std::int64_t>(wire & 1U);
}

/// Reads one AttributeProto (wire.cc). Its attribute is set in `record` when it is a known one.
std::optional<Attribute> read_attribute(std::string_view message, NodeRecord& record,
                                        Problem& problem);

/// Reads the varint before a record; returns how many bytes it has, 0 when there is none.
std::size_t read_length(std::string_view bytes, std::uint64_t& length);

}  // namespace orrery::chakra
