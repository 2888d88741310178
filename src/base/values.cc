// SPDX-License-Identifier: Apache-2.0
/// Texts of single values (reader.h).
#include <array>
#include <charconv>
#include <cmath>
#include <initializer_list>
#include <optional>
#include <span>

#include "base/reader.h"
#include "base/words.h"

namespace orrery {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};

constexpr std::array kPrefixes{Unit{"", 1},
                               Unit{"k", 1e3},
                               Unit{"M", 1e6},
                               Unit{"G", 1e9},
                               Unit{"T", 1e12},
                               Unit{"P", 1e15},
                               Unit{"Ki", 1024.0},
                               Unit{"Mi", 1048576.0},
                               Unit{"Gi", 1073741824.0},
                               Unit{"Ti", 1099511627776.0},
                               Unit{"Pi", 1125899906842624.0}};
constexpr std::array kTimeUnits{Unit{"s", 1e12}, Unit{"ms", 1e9}, Unit{"us", 1e6},
                                Unit{"ns", 1e3}, Unit{"ps", 1},   Unit{"min", 6e13}};  // in ps
constexpr std::array kDurationUnits{Unit{"s", 1}, Unit{"ms", 1e-3}, Unit{"min", 60},
                                    Unit{"h", 3600}, Unit{"d", 86400}};  // in s
constexpr std::string_view kSpaces = " \t";                              // of one line
constexpr double kBytePerBit = 0.125;
constexpr double kJoulePerWattHour = 3600;
constexpr std::array kEnergyPerByteUnits{Unit{"J/B", 1},       Unit{"nJ/B", 1e-9},
                                         Unit{"pJ/B", 1e-12},  Unit{"J/bit", 8},
                                         Unit{"nJ/bit", 8e-9}, Unit{"pJ/bit", 8e-12}};

struct Amount {
  double value = 0;
  std::optional<std::int64_t> whole;  ///< the same, when it is written without fraction or exponent
  std::string_view unit;
};

/// "1.5 us" -> {1.5, none, "us"}; nothing when it does not start with a finite number.
std::optional<Amount> split(std::string_view text) {
  text = trimmed(text, kSpaces);
  Amount amount;
  const char* last = text.data() + text.size();
  const auto [end, problem] = std::from_chars(text.data(), last, amount.value);
  if (problem != std::errc{} || !std::isfinite(amount.value)) {
    return std::nullopt;
  }
  std::int64_t whole = 0;
  if (const auto read = std::from_chars(text.data(), end, whole);
      read.ec == std::errc{} && read.ptr == end) {
    amount.whole = whole;
  }
  amount.unit = trimmed(text.substr(static_cast<std::size_t>(end - text.data())), kSpaces);
  return amount;
}

std::optional<double> factor_of(std::string_view name, std::span<const Unit> units) {
  for (const Unit& unit : units) {
    if (unit.name == name) {
      return unit.factor;
    }
  }
  return std::nullopt;
}

/// Factor of "GiB" with a prefix before one of the base units.
std::optional<double> prefixed(std::string_view name, std::initializer_list<Unit> bases) {
  for (const Unit& base : bases) {
    if (name.ends_with(base.name)) {
      const auto prefix = factor_of(name.substr(0, name.size() - base.name.size()), kPrefixes);
      if (prefix) {
        return *prefix * base.factor;
      }
    }
  }
  return std::nullopt;
}

/// value * factor; exact in integers where both are whole.
template <class T>
T scaled(const Amount& amount, double factor) {
  if constexpr (std::is_same_v<decltype(T().value()), std::int64_t>) {
    const auto whole_factor = static_cast<std::int64_t>(factor);
    if (amount.whole && static_cast<double>(whole_factor) == factor) {
      return T(*amount.whole) * whole_factor;
    }
  }
  return T::from_double(amount.value * factor);
}

/// `factor` maps a unit's name to its factor, or to nothing. Zero needs no unit.
template <class T, class Factor>
tl::expected<T, std::string> quantity(std::string_view text, Factor factor,
                                      std::string_view expected) {
  const std::optional<Amount> amount = split(text);
  if (!amount || amount->value < 0) {
    return tl::make_unexpected(std::string(expected));
  }
  const std::optional<double> unit =
      amount->unit.empty() && amount->value == 0 ? std::optional(1.0) : factor(amount->unit);
  if (!unit) {
    return tl::make_unexpected(std::string(expected));
  }
  const T result = scaled<T>(*amount, *unit);
  if (result.is_overflow() || !std::isfinite(static_cast<double>(result.value()))) {
    return tl::make_unexpected(std::string("a smaller value; this one is out of range"));
  }
  return result;
}

}  // namespace

tl::expected<Time, std::string> parse_time(std::string_view text) {
  return quantity<Time>(
      text, [](std::string_view unit) { return factor_of(unit, kTimeUnits); },
      "a time such as '1.5 us' (min, s, ms, us, ns, ps)");
}

tl::expected<Duration, std::string> parse_duration(std::string_view text) {
  return quantity<Duration>(
      text, [](std::string_view unit) { return factor_of(unit, kDurationUnits); },
      "a time such as '300 s' or '50000 h' (d, h, min, s, ms)");
}

tl::expected<Bytes, std::string> parse_bytes(std::string_view text) {
  return quantity<Bytes>(
      text,
      [](std::string_view unit) {
        return prefixed(unit, {{"B", 1}});
      },
      text.ends_with("KB") ? "'kB' (1000 bytes) or 'KiB' (1024 bytes): 'KB' may be either"
                           : "a size in bytes such as '80 GiB' or '40 GB'");
}

tl::expected<Bandwidth, std::string> parse_bandwidth(std::string_view text) {
  return quantity<Bandwidth>(
      text,
      [](std::string_view unit) {
        return prefixed(
            unit, {{"B/s", 1}, {"bit/s", kBytePerBit}, {"bps", kBytePerBit}, {"b/s", kBytePerBit}});
      },
      "a rate in bytes or bits per second such as '50 GB/s' or '400 Gbit/s'");
}

tl::expected<FlopRate, std::string> parse_flop_rate(std::string_view text) {
  return quantity<FlopRate>(
      text,
      [](std::string_view unit) {
        return prefixed(unit, {{"FLOP/s", 1}, {"FLOPS", 1}});
      },
      "a rate such as '312 TFLOP/s'");
}

tl::expected<Power, std::string> parse_power(std::string_view text) {
  return quantity<Power>(
      text,
      [](std::string_view unit) {
        return prefixed(unit, {{"W", 1}});
      },
      "a power such as '400 W'");
}

tl::expected<Energy, std::string> parse_energy(std::string_view text) {
  return quantity<Energy>(
      text,
      [](std::string_view unit) {
        return prefixed(unit, {{"J", 1},
                               {"Wh", kJoulePerWattHour},
                               {"mJ", 1e-3},
                               {"uJ", 1e-6},
                               {"nJ", 1e-9},
                               {"pJ", 1e-12}});
      },
      "an energy such as '3 MJ', '2 kWh' or '0.5 pJ'");
}

tl::expected<EnergyPerByte, std::string> parse_energy_per_byte(std::string_view text) {
  return quantity<EnergyPerByte>(
      text, [](std::string_view unit) { return factor_of(unit, kEnergyPerByteUnits); },
      "an energy per byte or bit such as '60 pJ/B' or '7.5 pJ/bit'");
}

tl::expected<Money, std::string> parse_money(std::string_view text) {
  constexpr Money kMost{1e12};  // what a step costs stays a number that can be read
  auto money = quantity<Money>(
      text,
      [](std::string_view unit) {
        return unit.empty() || unit == "USD" ? std::optional(1.0) : std::nullopt;
      },
      "a number of dollars such as '2.5'");
  if (money && *money > kMost) {
    return tl::make_unexpected(std::string("at most 1e12 dollars"));
  }
  return money;
}

tl::expected<std::int64_t, std::string> parse_integer(std::string_view text) {
  text = trimmed(text, kSpaces);
  std::int64_t value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem == std::errc::result_out_of_range) {
    return tl::make_unexpected(std::string("a whole number that fits 64 bits"));
  }
  if (problem != std::errc{} || end != text.data() + text.size()) {
    const bool amount = text.find_first_not_of("0123456789,_kKmMgGeE") == std::string_view::npos &&
                        text.find_first_of("0123456789") == 0;  // 8k, 1,024, 1e3
    return tl::make_unexpected(
        std::string(amount ? "a whole number in digits alone, such as 1024" : "a whole number"));
  }
  const std::string_view digits = text.substr(text.front() == '-' ? 1 : 0);
  if (digits.size() > 1 && digits.front() == '0') {  // octal to some readers, a slip to others
    return tl::make_unexpected("a whole number without leading zeros, " + std::to_string(value));
  }
  return value;
}

tl::expected<double, std::string> parse_number(std::string_view text) {
  const std::optional<Amount> amount = split(text);
  if (!amount || !amount->unit.empty()) {
    return tl::make_unexpected(std::string("a finite number"));
  }
  return amount->value;
}

tl::expected<bool, std::string> parse_bool(std::string_view text) {
  if (text == "true" || text == "false") {
    return text == "true";
  }
  return tl::make_unexpected(std::string("true or false"));
}

}  // namespace orrery
