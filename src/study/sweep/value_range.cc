// SPDX-License-Identifier: Apache-2.0
#include "study/sweep/value_range.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/reader.h"
#include "study/sweep/space.h"

namespace orrery::sweep {
namespace {

constexpr double kRounding = 1e-9;      // of a step: what sums of decimals are off by
constexpr int kDigits = 12;             // of a value: 0.3, not 0.30000000000000004
constexpr double kLargestWhole = 9e15;  // doubles tell whole numbers apart

/// "100 GB/s" -> 100 and " GB/s".
struct Measured {
  double number = 0;
  std::string unit;
};

std::optional<Measured> measured(const std::string& text) {
  const std::size_t end = std::min(text.find_first_not_of("+-.0123456789"), text.size());
  // An exponent is part of the number, a unit that begins with "e" is not.
  if (const auto whole = parse_number(text)) {
    return Measured{*whole, ""};
  }
  const std::size_t blank = std::min(text.find_first_not_of(' ', end), text.size());
  const auto number = parse_number(std::string_view(text).substr(0, end));
  if (!number || blank == text.size()) {
    return std::nullopt;
  }
  return Measured{*number, " " + text.substr(blank)};
}

Measured take_end(Reader& read, std::string_view name) {
  const auto text = read.required<std::string>(name);
  const std::optional<Measured> end = measured(text);
  read.require(end.has_value(), name, "a number, or one with its unit such as '100 GB/s'");
  return end.value_or(Measured{});
}

/// A step has the unit of the ends, a factor none.
double take_step(Reader& read, std::string_view name, const std::string& unit) {
  if (read.child(name, false) == nullptr) {
    return 0;
  }
  const Measured step = take_end(read, name);
  read.require(step.unit == unit, name,
               unit.empty() ? "a number without a unit" : "a number of" + unit);
  return step.number;
}

bool is_whole(double number) {
  return std::abs(number) < kLargestWhole && number == std::floor(number);
}

void check_steps(Reader& read, const ValueRange& range, bool drawn) {
  const bool stepped = read.child("step", false) != nullptr;
  const bool scaled = read.child("factor", false) != nullptr;
  read.require(range.to >= range.from, "to", "at least `from`");
  read.require(!stepped || range.step > 0, "step", "a number above 0");
  read.require(!scaled || (range.factor > 1 && range.from > 0), "factor",
               "a number above 1, from a `from` above 0");
  read.require(!stepped || !scaled, "factor", "either a step or a factor");
  read.require(stepped || scaled || drawn, "step",
               "a step or a factor, without which only `random` can draw");
  read.require(!range.log || (drawn && range.from > 0), "log",
               "ends above 0, and `random` to draw from between them");
}

std::string text_of(double number, const std::string& unit) {
  return fmt::format("{:.{}g}{}", number, is_whole(number) ? 17 : kDigits, unit);
}

}  // namespace

std::vector<std::string> ValueRange::values() const {
  std::vector<std::string> texts;
  const double most = to + kRounding * (step > 0 ? step : to);
  double value = from;
  for (std::size_t i = 0; value <= most && i <= kMostPoints; ++i) {
    texts.push_back(text_of(value, unit));
    const auto next = static_cast<double>(i + 1);
    value = step > 0 ? from + next * step : from * std::pow(factor, next);
  }
  return texts;
}

std::string ValueRange::draw(std::mt19937_64& random) const {
  const double at = unit_draw(random);
  if (whole) {
    const double count = to - from + 1;
    const double drawn = log ? from * std::pow(to / from, at) : from + at * count;
    return text_of(std::min(std::floor(drawn), to), unit);
  }
  return text_of(log ? from * std::pow(to / from, at) : from + at * (to - from), unit);
}

Result<ValueRange> parse_range(const ConfigNode& node, bool drawn) {
  Reader read(node);
  ValueRange range;
  const Measured from = take_end(read, "from");
  const Measured to = take_end(read, "to");
  range.from = from.number;
  range.to = to.number;
  range.unit = from.unit;
  read.require(from.unit == to.unit, "to", "the same unit as `from` has");
  range.step = take_step(read, "step", from.unit);
  range.factor = take_step(read, "factor", "");
  range.log = read.optional("log", false);
  range.whole = range.unit.empty() && is_whole(range.from) && is_whole(range.to) &&
                node.find("from") != nullptr &&
                node.find("from")->text.find('.') == std::string::npos;
  if (read.ok()) {
    check_steps(read, range, drawn);
  }
  return read.finish(std::move(range));
}

double unit_draw(std::mt19937_64& random) {
  constexpr int kUnused = 11;  // of 64 bits, beyond a double's 53
  return static_cast<double>(random() >> static_cast<unsigned>(kUnused)) * 0x1.0p-53;
}

}  // namespace orrery::sweep
