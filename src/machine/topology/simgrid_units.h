// SPDX-License-Identifier: Apache-2.0
/// Rates and times of SimGrid's platform files. Private to the folder.
#pragma once

#include <array>
#include <charconv>
#include <optional>
#include <span>
#include <string_view>

namespace orrery::topology {

struct XmlUnit {
  std::string_view name;
  double factor;
};

/// Reads "12.5GBps" with a table of units; a number alone is in the unit itself.
inline std::optional<double> simgrid_amount(std::string_view text, std::span<const XmlUnit> units) {
  double value = 0;
  const char* const last = text.data() + text.size();
  const auto [end, problem] = std::from_chars(text.data(), last, value);
  if (problem != std::errc{} || !(value >= 0 && value < 1e18)) {
    return std::nullopt;
  }
  const std::string_view unit(end, static_cast<std::size_t>(last - end));
  if (unit.empty()) {
    return value;
  }
  for (const XmlUnit& known : units) {
    if (known.name == unit) {
      return value * known.factor;
    }
  }
  return std::nullopt;
}

inline constexpr std::array kSimgridRates{
    XmlUnit{"Bps", 1},        XmlUnit{"kBps", 1e3},     XmlUnit{"MBps", 1e6},
    XmlUnit{"GBps", 1e9},     XmlUnit{"TBps", 1e12},    XmlUnit{"KiBps", 1024},
    XmlUnit{"MiBps", 0x1p20}, XmlUnit{"GiBps", 0x1p30}, XmlUnit{"TiBps", 0x1p40},
    XmlUnit{"bps", 0.125},    XmlUnit{"kbps", 125},     XmlUnit{"Mbps", 125e3},
    XmlUnit{"Gbps", 125e6},   XmlUnit{"Tbps", 125e9},   XmlUnit{"Kibps", 128},
    XmlUnit{"Mibps", 0x1p17}, XmlUnit{"Gibps", 0x1p27}};
inline constexpr std::array kSimgridTimes{
    XmlUnit{"s", 1},      XmlUnit{"ms", 1e-3}, XmlUnit{"us", 1e-6}, XmlUnit{"ns", 1e-9},
    XmlUnit{"ps", 1e-12}, XmlUnit{"m", 60},    XmlUnit{"h", 3600}};

}  // namespace orrery::topology
