// SPDX-License-Identifier: Apache-2.0
#include "report/cell.h"

#include <cstdint>
#include <string>
#include <variant>

namespace orrery::report {

void write_cell(JsonWriter& json, const sweep::Cell& cell) {
  if (const auto* const whole = std::get_if<std::int64_t>(&cell)) {
    json.value(*whole);
  } else if (const auto* const number = std::get_if<double>(&cell)) {
    json.value(*number);
  } else if (const auto* const text = std::get_if<std::string>(&cell)) {
    json.value(*text);
  } else {
    json.null();
  }
}

}  // namespace orrery::report
