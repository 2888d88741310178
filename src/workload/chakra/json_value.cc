// SPDX-License-Identifier: Apache-2.0
#include "workload/chakra/json_value.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/reader.h"

namespace orrery::chakra {
namespace {

std::optional<Value> whole_number(const ConfigNode& node) {
  if (const auto value = natural(node.text)) {
    return Value::natural(*value);
  }
  const auto value = parse_integer(node.text);
  return value ? std::optional(Value::integer(*value)) : std::nullopt;
}

}  // namespace

std::string snake_case(std::string_view name) {
  std::string snake;
  for (const char c : name) {
    if (c >= 'A' && c <= 'Z') {
      snake += '_';
      snake += static_cast<char>(c - 'A' + 'a');
    } else {
      snake += c;
    }
  }
  return snake;
}

std::optional<std::uint64_t> natural(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  return problem == std::errc() && end == text.data() + text.size() ? std::optional(value)
                                                                    : std::nullopt;
}

std::optional<Value> bare_value(const ConfigNode& node) {
  if (node.kind == ConfigNode::Kind::sequence) {
    Value list = Value::bools();
    for (const ConfigNode& item : node.items) {
      const auto entry = parse_bool(item.text);
      if (!entry) {
        return Value::other("list");
      }
      list.append(*entry);
    }
    return list;
  }
  if (node.kind != ConfigNode::Kind::scalar) {
    return std::nullopt;
  }
  if (node.quoted) {
    return Value::string(node.text);
  }
  if (node.text == "true" || node.text == "false") {
    return Value::boolean(node.text == "true");
  }
  if (auto whole = whole_number(node)) {
    return whole;
  }
  const auto real = parse_number(node.text);
  return real ? std::optional(Value::real(*real)) : std::nullopt;
}

std::optional<Value> typed_value(std::string_view field, const ConfigNode& node) {
  if (field == "bool_list") {
    const ConfigNode* values = node.find("values");
    return values == nullptr ? std::optional(Value::bools()) : bare_value(*values);
  }
  if (field.ends_with("_list")) {
    return Value::other("list");
  }
  if (node.kind != ConfigNode::Kind::scalar) {
    return std::nullopt;
  }
  if (field == "string_val") {
    return Value::string(node.text);
  }
  if (field == "bytes_val") {
    return Value::other("bytes");
  }
  if (field == "bool_val") {
    return node.text == "true" || node.text == "false"
               ? std::optional(Value::boolean(node.text == "true"))
               : std::nullopt;
  }
  if (field == "double_val" || field == "float_val") {
    const auto real = parse_number(node.text);
    const bool special = node.text == "NaN" || node.text == "Infinity" || node.text == "-Infinity";
    return real || special ? std::optional(Value::real(real.value_or(0))) : std::nullopt;
  }
  return whole_number(node);
}

bool is_value_field(std::string_view field) {
  constexpr std::array<std::string_view, 15> kTypes{
      "double",  "float",   "int32",    "int64",    "uint32", "uint64", "sint32", "sint64",
      "fixed32", "fixed64", "sfixed32", "sfixed64", "bool",   "string", "bytes"};
  const std::size_t end = field.rfind('_');
  return end != std::string_view::npos &&
         (field.substr(end) == "_val" || field.substr(end) == "_list") &&
         std::find(kTypes.begin(), kTypes.end(), field.substr(0, end)) != kTypes.end();
}

}  // namespace orrery::chakra
