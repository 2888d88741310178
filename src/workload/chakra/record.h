// SPDX-License-Identifier: Apache-2.0
/// One node of a trace as its file says it, before it means anything. Both formats (`.et` and JSON)
/// are read into records; program_builder.h gives them their meaning.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace orrery::chakra {

/// Versions of the schema that a file's metadata may name: they are one and the same.
constexpr bool is_schema(std::string_view version) {
  return version.empty() || version == "0.0.4" || version == "1.0.0" || version == "1.0.1";
}
inline constexpr std::string_view kSchemas =
    "'', '0.0.4', '1.0.0' or '1.0.1', the schemas that are read";

/// Attributes that are read. Others are ignored by name, as Chakra's feeders do; so do they those
/// that only this program writes: the slowdowns, how many times its duration a kernel takes beside
/// a collective, and beside a message; and ring_shift, that a message is its rank's part of a shift
/// by one rank in pg_name.
enum class Attribute : std::uint8_t {
  is_cpu_op,
  num_ops,
  tensor_size,
  comm_type,
  comm_size,
  comm_priority,
  comm_src,
  comm_dst,
  comm_tag,
  pg_name,
  involved_dim,
  slowdown_beside_collective,
  slowdown_beside_message,
  ring_shift
};
inline constexpr std::array<std::string_view, 14> kAttributeNames{"is_cpu_op",
                                                                  "num_ops",
                                                                  "tensor_size",
                                                                  "comm_type",
                                                                  "comm_size",
                                                                  "comm_priority",
                                                                  "comm_src",
                                                                  "comm_dst",
                                                                  "comm_tag",
                                                                  "pg_name",
                                                                  "involved_dim",
                                                                  "slowdown_beside_collective",
                                                                  "slowdown_beside_message",
                                                                  "ring_shift"};
std::optional<Attribute> attribute_of(std::string_view name);

/// The value of an attribute.
struct Value {
  enum class Kind : std::uint8_t { none, integer, natural, real, boolean, text, bool_list, other };

  Kind kind = Kind::none;
  std::uint8_t count = 0;  ///< of bool_list: entries; kTooMany when there are more than 32
  std::uint64_t bits = 0;  ///< integer: two's complement; natural; boolean; real: its bits;
                           ///< bool_list: bit i is entry i
  std::string_view text;   ///< of text; of other: the name of its type

  static constexpr std::uint8_t kTooMany = 255;
  static Value integer(std::int64_t value) {
    return {Kind::integer, 0, static_cast<std::uint64_t>(value), {}};
  }
  static Value natural(std::uint64_t value) { return {Kind::natural, 0, value, {}}; }
  static Value real(double value) {
    return {Kind::real, 0, std::bit_cast<std::uint64_t>(value), {}};
  }
  static Value boolean(bool value) { return {Kind::boolean, 0, value ? 1U : 0U, {}}; }
  static Value string(std::string_view text) { return {Kind::text, 0, 0, text}; }
  static Value other(std::string_view type) { return {Kind::other, 0, 0, type}; }
  static Value bools() { return {Kind::bool_list, 0, 0, {}}; }

  /// Appends to a bool_list.
  void append(bool entry) {
    if (count >= 32) {
      count = kTooMany;
      return;
    }
    bits |= std::uint64_t{entry ? 1U : 0U} << count;
    ++count;
  }
  /// Returns the text that a message shows: "-3", "1.5", "a list (DoubleList)".
  std::string shown() const;
};

/// Views are valid until the next record.
struct NodeRecord {
  std::uint64_t id = 0;
  std::uint64_t duration_micros = 0;
  std::int64_t type = 0;
  std::string_view name;
  std::string_view input_values;            ///< IOInfo.values of `inputs`
  std::vector<std::uint64_t> dependencies;  ///< ids, control and data

  /// Bytes of an attribute within its record: tag, length and value.
  struct Place {
    Attribute attribute;
    std::size_t begin;
    std::size_t end;
  };
  /// Records of `.et` files have these: first and last byte of the record in the file, and the
  /// attributes in it that name ranks or groups.
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::vector<Place> of_rank;

  const Value* find(Attribute attribute) const {
    return (given_ >> static_cast<unsigned>(attribute) & 1U) != 0
               ? &values_[static_cast<std::size_t>(attribute)]
               : nullptr;
  }
  /// False when the node has the attribute already.
  bool set(Attribute attribute, const Value& value) {
    const bool fresh = find(attribute) == nullptr;
    given_ |= 1U << static_cast<unsigned>(attribute);
    values_[static_cast<std::size_t>(attribute)] = value;
    return fresh;
  }
  void clear();

 private:
  std::uint32_t given_ = 0;
  std::array<Value, kAttributeNames.size()> values_;
};

/// Returns whether the bytes are UTF-8 without NUL, which names must be.
bool is_text(std::string_view bytes);

}  // namespace orrery::chakra
