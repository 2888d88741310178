// SPDX-License-Identifier: Apache-2.0
#include "base/reader.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <initializer_list>
#include <optional>

namespace orrery {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};

struct Prefix {
  std::string_view name;
  double factor;
};
constexpr std::array<Prefix, 11> kPrefixes{{{"", 1},
                                            {"k", 1e3},
                                            {"M", 1e6},
                                            {"G", 1e9},
                                            {"T", 1e12},
                                            {"P", 1e15},
                                            {"Ki", 1024.0},
                                            {"Mi", 1048576.0},
                                            {"Gi", 1073741824.0},
                                            {"Ti", 1099511627776.0},
                                            {"Pi", 1125899906842624.0}}};
constexpr std::array<Unit, 6> kTimeUnits{
    {{"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"ns", 1e-9}, {"ps", 1e-12}, {"min", 60}}};

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  const auto last = text.find_last_not_of(" \t");
  return first == std::string_view::npos ? "" : text.substr(first, last - first + 1);
}

struct Amount {
  double value;
  std::string_view unit;
};

/// "1.5 us" -> {1.5, "us"}; nothing when it does not start with a finite number.
std::optional<Amount> split(std::string_view text) {
  text = trimmed(text);
  double value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc{} || !std::isfinite(value)) {
    return std::nullopt;
  }
  return Amount{value, trimmed(text.substr(static_cast<std::size_t>(end - text.data())))};
}

/// Factor of "GiB" for base unit "B"; nothing when the prefix is unknown.
std::optional<double> prefix_factor(std::string_view unit, std::string_view base) {
  if (unit.size() < base.size() || unit.substr(unit.size() - base.size()) != base) {
    return std::nullopt;
  }
  const std::string_view prefix = unit.substr(0, unit.size() - base.size());
  for (const Prefix& known : kPrefixes) {
    if (known.name == prefix) {
      return known.factor;
    }
  }
  return std::nullopt;
}

/// A non-negative amount in units of the first base that fits; bases have factors of their own.
std::optional<double> amount(std::string_view text, std::initializer_list<Unit> bases) {
  const std::optional<Amount> parts = split(text);
  if (!parts || parts->value < 0) {
    return std::nullopt;
  }
  if (parts->unit.empty()) {
    return parts->value == 0 ? std::optional(0.0) : std::nullopt;
  }
  for (const Unit& base : bases) {
    if (const auto factor = prefix_factor(parts->unit, base.name)) {
      const double value = parts->value * *factor * base.factor;
      return std::isfinite(value) ? std::optional(value) : std::nullopt;
    }
  }
  return std::nullopt;
}

constexpr double kBytePerBit = 0.125;

template <class T>
tl::expected<T, std::string> quantity(std::optional<double> value, std::string_view expected) {
  if (!value) {
    return tl::make_unexpected(std::string(expected));
  }
  const T result = T::from_double(*value);
  if (result.is_overflow()) {
    return tl::make_unexpected(std::string("a smaller value; this one is out of range"));
  }
  return result;
}

}  // namespace

tl::expected<Time, std::string> parse_time(std::string_view text) {
  const std::optional<Amount> parts = split(text);
  std::optional<double> picoseconds;
  if (parts && parts->value >= 0) {
    if (parts->unit.empty() && parts->value == 0) {
      picoseconds = 0;
    }
    for (const Unit& unit : kTimeUnits) {
      if (unit.name == parts->unit) {
        picoseconds = parts->value * unit.factor * kPicosecondsPerSecond;
      }
    }
  }
  return quantity<Time>(picoseconds, "a time such as '1.5 us' (s, ms, us, ns, ps)");
}

tl::expected<Bytes, std::string> parse_bytes(std::string_view text) {
  return quantity<Bytes>(amount(text, {{"B", 1}}), "a size in bytes such as '80 GiB' or '40 GB'");
}

tl::expected<Bandwidth, std::string> parse_bandwidth(std::string_view text) {
  return quantity<Bandwidth>(
      amount(text,
             {{"B/s", 1}, {"bit/s", kBytePerBit}, {"bps", kBytePerBit}, {"b/s", kBytePerBit}}),
      "a rate in bytes or bits per second such as '50 GB/s' or '400 Gbit/s'");
}

tl::expected<FlopRate, std::string> parse_flop_rate(std::string_view text) {
  return quantity<FlopRate>(amount(text, {{"FLOP/s", 1}, {"FLOPS", 1}}),
                            "a rate such as '312 TFLOP/s'");
}

tl::expected<Power, std::string> parse_power(std::string_view text) {
  return quantity<Power>(amount(text, {{"W", 1}}), "a power such as '400 W'");
}

tl::expected<std::int64_t, std::string> parse_integer(std::string_view text) {
  text = trimmed(text);
  std::int64_t value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem == std::errc::result_out_of_range) {
    return tl::make_unexpected(std::string("a smaller whole number"));
  }
  if (problem != std::errc{} || end != text.data() + text.size()) {
    return tl::make_unexpected(std::string("a whole number"));
  }
  return value;
}

tl::expected<double, std::string> parse_number(std::string_view text) {
  const std::optional<Amount> parts = split(text);
  if (!parts || !parts->unit.empty()) {
    return tl::make_unexpected(std::string("a finite number"));
  }
  return parts->value;
}

tl::expected<bool, std::string> parse_bool(std::string_view text) {
  if (text == "true" || text == "false") {
    return text == "true";
  }
  return tl::make_unexpected(std::string("true or false"));
}

Reader::Reader(const ConfigNode& node) : node_(node) {
  if (node.kind != ConfigNode::Kind::map) {
    error_.add({node.where(), node.path, node.shown(), "a map of fields"});
  }
}

const ConfigNode* Reader::take(std::string_view name, bool must_exist) {
  known_.emplace(name);
  const ConfigNode* node = node_.find(name);
  const bool missing = node == nullptr || node->kind == ConfigNode::Kind::null;
  if (missing && must_exist && node_.kind == ConfigNode::Kind::map) {
    const std::string path = node_.path.empty() ? "" : node_.path + ".";
    error_.add({node_.where(), path + std::string(name), {}, "required, but missing"});
    return nullptr;
  }
  return node;
}

const ConfigNode* Reader::child(std::string_view name, bool must_exist) {
  const ConfigNode* node = take(name, must_exist);
  return node == nullptr || node->kind == ConfigNode::Kind::null ? nullptr : node;
}

std::vector<const ConfigNode*> Reader::take_items(std::string_view name, bool must_exist) {
  std::vector<const ConfigNode*> items;
  const ConfigNode* node = child(name, must_exist);
  if (node == nullptr) {
    return items;
  }
  if (node->kind != ConfigNode::Kind::sequence) {
    mistake(*node, "a list");
    return items;
  }
  for (const ConfigNode& item : node->items) {
    items.push_back(&item);
  }
  return items;
}

void Reader::reject(std::string_view name, std::string expected) {
  const ConfigNode* node = node_.find(name);
  if (node != nullptr) {
    mistake(*node, std::move(expected));
    return;
  }
  const std::string path = node_.path.empty() ? "" : node_.path + ".";
  error_.add({node_.where(), path + std::string(name), {}, std::move(expected)});
}

void Reader::mistake(const ConfigNode& node, std::string expected) {
  error_.add({node.where(), node.path, node.shown(), std::move(expected)});
}

void Reader::check_unknown_fields() {
  const std::vector<std::string> known(known_.begin(), known_.end());
  for (const auto& [name, node] : node_.fields) {
    if (!known_.contains(name)) {
      error_.add({node.where(), node.path, {}, "unknown field" + did_you_mean(name, known)});
    }
  }
}

}  // namespace orrery
