// SPDX-License-Identifier: Apache-2.0
/// Reads a map field by field, collecting every mistake before it reports.
///
///   Reader read(node);
///   Device device{.memory_bandwidth = read.required<Bandwidth>("memory_bandwidth"),
///                 .units = read.optional("units", 1)};
///   return read.finish(device);  // refuses fields that nobody asked for, with "did you mean"
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/config_node.h"
#include "base/names.h"
#include "base/result.h"
#include "base/units.h"

namespace orrery {

/// Reads a value from its text. The error is what would have been right, such as "a rate in bytes
/// or bits per second such as '50 GB/s' or '400 Gbit/s'". Decimal prefixes (k M G T P) are powers
/// of 1000, binary ones (Ki Mi Gi Ti) of 1024; a quantity without a unit is a mistake (except 0).
/// Numbers must be finite; integers are in range of the type.
tl::expected<Time, std::string> parse_time(std::string_view text);            // "1.5 us"
tl::expected<Duration, std::string> parse_duration(std::string_view text);    // "50000 h", "90 d"
tl::expected<Bytes, std::string> parse_bytes(std::string_view text);          // "80 GiB", "40 GB"
tl::expected<Bandwidth, std::string> parse_bandwidth(std::string_view text);  // "400 Gbit/s"
tl::expected<FlopRate, std::string> parse_flop_rate(std::string_view text);   // "312 TFLOP/s"
tl::expected<Power, std::string> parse_power(std::string_view text);          // "400 W"
tl::expected<Energy, std::string> parse_energy(std::string_view text);        // "3 MJ", "2 kWh"
tl::expected<EnergyPerByte, std::string> parse_energy_per_byte(
    std::string_view text);                                           // "60 pJ/B", "7.5 pJ/bit"
tl::expected<Money, std::string> parse_money(std::string_view text);  // "2.5" or "2.5 USD"
tl::expected<std::int64_t, std::string> parse_integer(std::string_view text);
tl::expected<double, std::string> parse_number(std::string_view text);
tl::expected<bool, std::string> parse_bool(std::string_view text);

/// Reads one value from its text, by type: the same rules for YAML fields and command-line flags.
template <class T>
tl::expected<T, std::string> parse_value(std::string_view text) {
  if constexpr (std::is_same_v<T, std::string>) {
    return std::string(text);
  } else if constexpr (std::is_same_v<T, bool>) {
    return parse_bool(text);
  } else if constexpr (std::is_same_v<T, Time>) {
    return parse_time(text);
  } else if constexpr (std::is_same_v<T, Duration>) {
    return parse_duration(text);
  } else if constexpr (std::is_same_v<T, Bytes>) {
    return parse_bytes(text);
  } else if constexpr (std::is_same_v<T, Bandwidth>) {
    return parse_bandwidth(text);
  } else if constexpr (std::is_same_v<T, FlopRate>) {
    return parse_flop_rate(text);
  } else if constexpr (std::is_same_v<T, Power>) {
    return parse_power(text);
  } else if constexpr (std::is_same_v<T, Energy>) {
    return parse_energy(text);
  } else if constexpr (std::is_same_v<T, EnergyPerByte>) {
    return parse_energy_per_byte(text);
  } else if constexpr (std::is_same_v<T, Money>) {
    return parse_money(text);
  } else if constexpr (std::is_enum_v<T>) {
    if (auto value = value_of<T>(text)) {
      return *value;
    }
    return tl::make_unexpected("one of " + all_names<T>() + did_you_mean(text, names_of<T>()));
  } else if constexpr (std::is_integral_v<T>) {
    auto value = parse_integer(text);
    if (value && std::in_range<T>(*value)) {
      return static_cast<T>(*value);
    }
    return tl::make_unexpected(value ? std::string("a smaller whole number") : value.error());
  } else {
    static_assert(std::is_floating_point_v<T>, "no parse_value for this type");
    return parse_number(text);
  }
}

class Reader {
 public:
  /// `node` must outlive the reader. A node that is not a map is the first mistake.
  explicit Reader(const ConfigNode& node);

  /// Returns the field's value; a mistake (and T{}) when it is missing or wrong.
  template <class T>
  T required(std::string_view name) {
    const ConfigNode* node = take(name, true);
    return node == nullptr ? T{} : convert<T>(*node, T{});
  }
  /// Returns the field's value or `fallback` when it is not there; null counts as not there.
  template <class T>
  T optional(std::string_view name, T fallback) {
    const ConfigNode* node = take(name, false);
    return node == nullptr || node->kind == ConfigNode::Kind::null ? fallback
                                                                   : convert<T>(*node, fallback);
  }
  template <class T>
  std::optional<T> maybe(std::string_view name) {
    const ConfigNode* node = take(name, false);
    if (node == nullptr || node->kind == ConfigNode::Kind::null) {
      return std::nullopt;
    }
    return convert<T>(*node, T{});
  }
  /// Returns a list of values; missing gives an empty list (a mistake when `must_exist`).
  template <class T>
  std::vector<T> list(std::string_view name, bool must_exist = false) {
    std::vector<T> values;
    for (const ConfigNode* item : take_items(name, must_exist)) {
      values.push_back(convert<T>(*item, T{}));
    }
    return values;
  }

  /// Returns the field's own node for a nested Reader, or nullptr when missing (a mistake if
  /// required).
  const ConfigNode* child(std::string_view name, bool must_exist);
  /// Returns the items of a list field, for nested Readers. A field that is not a list is a
  /// mistake.
  std::vector<const ConfigNode*> take_items(std::string_view name, bool must_exist);
  /// Declares a field as known without reading it.
  void ignore(std::string_view name) { take(name, false); }
  /// Makes fields that nobody asked for until now a sentence each instead of a mistake.
  void warn_of_unknown(std::vector<std::string>& warnings);

  /// Returns the sentences of fields that nobody asked for until now and that `harmless` accepts;
  /// they are known from now on.
  std::vector<std::string> pass_unknown(bool (*harmless)(std::string_view name,
                                                         const ConfigNode& node));

  /// Adds a mistake about a field that was read (range, combination ...). Adds nothing about a
  /// value that was missing or could not be read: that is one mistake, not two.
  void reject(std::string_view name, std::string expected);
  void require(bool ok, std::string_view name, std::string expected) {
    if (!ok) {
      reject(name, std::move(expected));
    }
  }
  /// Takes over the mistakes of a nested result and returns its value (or T{}).
  template <class T>
  T absorb(Result<T> result) {
    if (result) {
      return std::move(*result);
    }
    error_.add(std::move(result.error()));
    return T{};
  }

  const ConfigNode& node() const { return node_; }
  bool ok() const { return error_.empty(); }

  /// Returns the value, or all mistakes; unknown fields are mistakes.
  template <class T>
  Result<T> finish(T value) {
    check_unknown_fields();
    if (!error_.empty()) {
      return fail(std::move(error_));
    }
    return value;
  }

 private:
  std::string path_of(std::string_view name) const;
  const ConfigNode* take(std::string_view name, bool must_exist);
  void mistake(const ConfigNode& node, std::string expected);
  void check_unknown_fields();

  template <class T>
  T convert(const ConfigNode& node, T fallback) {
    if (node.kind != ConfigNode::Kind::scalar) {
      mistake(node, "a single value");
      return fallback;
    }
    if constexpr (!std::is_same_v<T, std::string> && !std::is_enum_v<T>) {
      if (node.quoted && (std::is_arithmetic_v<T>)) {
        mistake(node, "a value without quotes");
        return fallback;
      }
    }
    auto value = parse_value<T>(node.text);
    if (!value) {
      mistake(node, value.error());
      return fallback;
    }
    return *value;
  }

  const ConfigNode& node_;
  std::set<std::string, std::less<>> known_;
  std::set<std::string, std::less<>> unread_;  ///< paths of what was missing or could not be read
  Error error_;
};

}  // namespace orrery
