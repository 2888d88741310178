// SPDX-License-Identifier: Apache-2.0
#include "base/format.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <string_view>

namespace orrery {
namespace {

struct Scale {
  double factor;
  std::string_view prefix;
};
constexpr std::array<Scale, 6> kDecimal{
    {{1e15, "P"}, {1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}, {1, ""}}};

std::string with_prefix(double value, std::string_view unit) {
  for (const Scale& scale : kDecimal) {
    if (std::abs(value) >= scale.factor) {
      return fmt::format("{:.4g} {}{}", value / scale.factor, scale.prefix, unit);
    }
  }
  return fmt::format("{:.4g} {}", value, unit);
}

}  // namespace

std::string to_string(Time time) {
  constexpr std::array<Scale, 5> kUnits{
      {{1e12, "s"}, {1e9, "ms"}, {1e6, "us"}, {1e3, "ns"}, {1, "ps"}}};
  const auto picoseconds = static_cast<double>(time.value());
  for (const Scale& unit : kUnits) {
    if (std::abs(picoseconds) >= unit.factor) {
      // Whole seconds beyond four digits stay whole: "12345 s", not "1.234e+04 s".
      return std::abs(picoseconds) >= 1e16
                 ? fmt::format("{:.0f} {}", picoseconds / unit.factor, unit.prefix)
                 : fmt::format("{:.4g} {}", picoseconds / unit.factor, unit.prefix);
    }
  }
  return "0 s";
}

std::string to_string(Bytes bytes) {
  constexpr std::array<Scale, 5> kUnits{{{1125899906842624.0, "PiB"},
                                         {1099511627776.0, "TiB"},
                                         {1073741824.0, "GiB"},
                                         {1048576.0, "MiB"},
                                         {1024.0, "KiB"}}};
  const auto value = static_cast<double>(bytes.value());
  for (const Scale& unit : kUnits) {
    if (std::abs(value) >= unit.factor) {
      return std::abs(value) >= 1e4 * unit.factor
                 ? fmt::format("{:.0f} {}", value / unit.factor, unit.prefix)
                 : fmt::format("{:.4g} {}", value / unit.factor, unit.prefix);
    }
  }
  return fmt::format("{} B", bytes.value());
}

std::string to_string(Bandwidth bandwidth) {
  return with_prefix(bandwidth.value(), "B/s");
}
std::string to_string(FlopRate rate) {
  return with_prefix(rate.value(), "FLOP/s");
}
std::string to_string(Power power) {
  return with_prefix(power.value(), "W");
}

}  // namespace orrery
