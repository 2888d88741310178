// SPDX-License-Identifier: Apache-2.0
#include "study/sweep/cell.h"

#include <fmt/format.h>

#include "base/reader.h"

namespace orrery::sweep {

std::string to_string(const Cell& cell) {
  if (const auto* text = std::get_if<std::string>(&cell)) {
    return *text;
  }
  if (const auto* number = std::get_if<double>(&cell)) {
    return fmt::format("{}", *number);
  }
  const auto* integer = std::get_if<std::int64_t>(&cell);
  return integer == nullptr ? "" : std::to_string(*integer);
}

Cell cell_of(const std::string& text) {
  if (const auto integer = parse_integer(text)) {
    return *integer;
  }
  if (const auto number = parse_number(text)) {
    return *number;
  }
  return text;
}

}  // namespace orrery::sweep
