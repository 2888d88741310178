// SPDX-License-Identifier: Apache-2.0
/// Any bytes as the text of one value: a value in range or a sentence that says what would be
/// right.
#include <cmath>

#include "base/reader.h"
#include "tests/fuzz/fuzz.h"

namespace {

template <class T>
void parse_as(std::string_view text) {
  const auto value = orrery::parse_value<T>(text);
  orrery::fuzz::hold(value.has_value() || !value.error().empty(), "a refusal says why");
}

}  // namespace

ORRERY_FUZZ(values) {
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  parse_as<orrery::Time>(text);
  parse_as<orrery::Bytes>(text);
  parse_as<orrery::Bandwidth>(text);
  parse_as<orrery::FlopRate>(text);
  parse_as<orrery::Power>(text);
  parse_as<orrery::Energy>(text);
  parse_as<orrery::EnergyPerByte>(text);
  parse_as<orrery::Money>(text);
  parse_as<std::int64_t>(text);
  parse_as<bool>(text);
  const auto number = orrery::parse_number(text);
  orrery::fuzz::hold(!number || std::isfinite(*number), "a number is finite");
  return 0;
}
