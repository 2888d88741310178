// SPDX-License-Identifier: Apache-2.0
#include "workload/chakra/record.h"

#include <fmt/format.h>

#include <cstring>

namespace orrery::chakra {
namespace {

/// Length of the UTF-8 sequence at the start of `bytes`; 0 when there is none (RFC 3629: no
/// overlong forms, no surrogates, nothing above U+10FFFF).
std::size_t sequence_length(std::string_view bytes) {
  const auto at = [&](std::size_t i) {
    return i < bytes.size() ? static_cast<unsigned char>(bytes[i]) : 0U;
  };
  const auto continues = [&](std::size_t i) { return (at(i) & 0xC0U) == 0x80U; };
  const unsigned first = at(0);
  if (first < 0x80) {
    return 1;
  }
  if (first >= 0xC2 && first <= 0xDF) {
    return continues(1) ? 2 : 0;
  }
  if ((first & 0xF0U) == 0xE0U) {
    const bool in_range = (first != 0xE0 || at(1) >= 0xA0) && (first != 0xED || at(1) < 0xA0);
    return in_range && continues(1) && continues(2) ? 3 : 0;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    const bool in_range = (first != 0xF0 || at(1) >= 0x90) && (first != 0xF4 || at(1) < 0x90);
    return in_range && continues(1) && continues(2) && continues(3) ? 4 : 0;
  }
  return 0;
}

}  // namespace

std::optional<Attribute> attribute_of(std::string_view name) {
  // Length and one letter leave a single candidate.
  const auto is = [&](Attribute attribute) {
    return name == kAttributeNames[static_cast<std::size_t>(attribute)] ? std::optional(attribute)
                                                                        : std::nullopt;
  };
  switch (name.size()) {
    case 7:
      return name[0] == 'n' ? is(Attribute::num_ops) : is(Attribute::pg_name);
    case 8:
      return name[5] == 's'   ? is(Attribute::comm_src)
             : name[5] == 'd' ? is(Attribute::comm_dst)
                              : is(Attribute::comm_tag);
    case 9:
      return name[0] == 'i'   ? is(Attribute::is_cpu_op)
             : name[5] == 't' ? is(Attribute::comm_type)
                              : is(Attribute::comm_size);
    case 10:
      return is(Attribute::ring_shift);
    case 11:
      return is(Attribute::tensor_size);
    case 12:
      return is(Attribute::involved_dim);
    case 13:
      return is(Attribute::comm_priority);
    case 23:
      return is(Attribute::slowdown_beside_message);
    case 26:
      return is(Attribute::slowdown_beside_collective);
    default:
      return std::nullopt;
  }
}

std::string Value::shown() const {
  switch (kind) {
    case Kind::none:
      return "no value";
    case Kind::integer:
      return fmt::format("{}", static_cast<std::int64_t>(bits));
    case Kind::natural:
      return fmt::format("{}", bits);
    case Kind::real:
      return fmt::format("{}", std::bit_cast<double>(bits));
    case Kind::boolean:
      return bits != 0 ? "true" : "false";
    case Kind::text:
      return is_text(text) ? fmt::format("text {}", text.substr(0, 60)) : "text that is not UTF-8";
    case Kind::bool_list:
      return count == kTooMany ? "a list of more than 32 bools" : "a list of bools";
    case Kind::other:
      return fmt::format("a value of type {}", text);
  }
  return {};
}

void NodeRecord::clear() {
  id = 0;
  duration_micros = 0;
  type = 0;
  name = {};
  input_values = {};
  dependencies.clear();
  of_rank.clear();
  given_ = 0;
}

bool is_text(std::string_view bytes) {
  while (!bytes.empty()) {
    std::uint64_t word = 0;
    if (bytes.size() >= sizeof word) {
      std::memcpy(&word, bytes.data(), sizeof word);
      constexpr std::uint64_t kHigh = 0x8080808080808080;
      // Eight ASCII bytes, none of them 0: subtracting 1 sets the high bit of a zero byte only.
      if ((word & kHigh) == 0 && ((word - 0x0101010101010101) & ~word & kHigh) == 0) {
        bytes.remove_prefix(sizeof word);
        continue;
      }
    }
    const std::size_t length = sequence_length(bytes);
    if (length == 0 || bytes.front() == '\0') {
      return false;
    }
    bytes.remove_prefix(length);
  }
  return true;
}

}  // namespace orrery::chakra
