// SPDX-License-Identifier: Apache-2.0
#include "base/format.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <string_view>
#include <vector>

#include "base/reader.h"

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

std::string to_string(Duration duration) {
  for (const auto& [unit, seconds] :
       {std::pair{"d", 86400.0}, std::pair{"h", 3600.0}, std::pair{"min", 60.0}}) {
    if (std::abs(duration.value()) >= 2 * seconds) {
      return fmt::format("{:.4g} {}", duration.value() / seconds, unit);
    }
  }
  return fmt::format("{:.4g} s", duration.value());
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
std::string to_string(Energy energy) {
  for (const auto& [unit, factor] : {std::pair{"mJ", 1e-3}, std::pair{"uJ", 1e-6},
                                     std::pair{"nJ", 1e-9}, std::pair{"pJ", 1e-12}}) {
    if (energy.value() > 0 && energy.value() < 1 && energy.value() >= factor) {
      return fmt::format("{:.4g} {}", energy.value() / factor, unit);
    }
  }
  return with_prefix(energy.value(), "J");
}
std::string to_string(EnergyPerByte cost) {
  return fmt::format("{:.4g} pJ/B", cost.value() / 1e-12);
}
std::string to_string(Money money) {
  return fmt::format("{:.4g} USD", money.value());
}

namespace {

/// Returns the shortest of the candidates that reads back as `value`; the last one must.
template <class T>
std::string shortest(T value, const std::vector<std::string>& candidates) {
  std::string best = candidates.back();
  for (auto each = candidates.rbegin(); each != candidates.rend(); ++each) {
    const auto again = parse_value<T>(*each);
    if (each->size() <= best.size() && again && *again == value) {
      best = *each;
    }
  }
  return best;
}

/// Candidates in every unit in which the number is at least 1, the largest first, then the number
/// itself in the base unit.
template <class T>
std::string in_units(T value, std::initializer_list<Scale> units, std::string_view base) {
  std::vector<std::string> candidates;
  for (const Scale& unit : units) {
    const double number = static_cast<double>(value.value()) / unit.factor;
    if (std::abs(number) >= 1) {
      candidates.push_back(fmt::format("{} {}", number, unit.prefix));
    }
  }
  candidates.push_back(fmt::format("{} {}", value.value(), base));
  return shortest(value, candidates);
}

}  // namespace

std::string exact_text(Time time) {
  return in_units(time, {{1e12, "s"}, {1e9, "ms"}, {1e6, "us"}, {1e3, "ns"}}, "ps");
}
std::string exact_text(Bytes bytes) {
  return in_units(bytes,
                  {{1099511627776.0, "TiB"},
                   {1e12, "TB"},
                   {1073741824.0, "GiB"},
                   {1e9, "GB"},
                   {1048576.0, "MiB"},
                   {1e6, "MB"},
                   {1024.0, "KiB"},
                   {1e3, "kB"}},
                  "B");
}
std::string exact_text(Bandwidth bandwidth) {
  return in_units(bandwidth, {{1e12, "TB/s"}, {1e9, "GB/s"}, {1e6, "MB/s"}, {1e3, "kB/s"}}, "B/s");
}
std::string exact_text(FlopRate rate) {
  return in_units(rate, {{1e15, "PFLOP/s"}, {1e12, "TFLOP/s"}, {1e9, "GFLOP/s"}, {1e6, "MFLOP/s"}},
                  "FLOP/s");
}
std::string exact_text(Power power) {
  return in_units(power, {{1e6, "MW"}, {1e3, "kW"}}, "W");
}
std::string exact_text(Energy energy) {
  return in_units(
      energy, {{1e9, "GJ"}, {1e6, "MJ"}, {1e3, "kJ"}, {1, "J"}, {1e-9, "nJ"}, {1e-12, "pJ"}}, "J");
}
std::string exact_text(EnergyPerByte cost) {
  return in_units(cost, {{1, "J/B"}, {1e-9, "nJ/B"}, {1e-12, "pJ/B"}}, "J/B");
}
std::string exact_text(Money money) {
  return fmt::format("{} USD", money.value());
}
std::string exact_text(double number) {
  return fmt::format("{}", number);
}
std::string exact_text(bool value) {
  return value ? "true" : "false";
}
std::string exact_text(std::int64_t number) {
  return fmt::format("{}", number);
}
std::string exact_text(int number) {
  return fmt::format("{}", number);
}

std::string exact_text(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      quoted += {'\\', c};
    } else if (byte < 0x20 || byte == 0x7F) {
      quoted += fmt::format("\\x{:02x}", byte);
    } else {
      quoted += c;
    }
  }
  return quoted + '"';
}

std::string percent(double share) {
  return fmt::format("{:.1f} %", 100 * share);
}

}  // namespace orrery
