// SPDX-License-Identifier: Apache-2.0
/// Quantities as people read them; parse_* of base/reader.h reads every one of these back.
#pragma once

#include <string>
#include <string_view>

#include "base/names.h"
#include "base/units.h"

namespace orrery {

std::string to_string(Time time);            ///< "1.234 ms"; 4 significant digits
std::string to_string(Duration duration);    ///< "3.090 h", "54.00 d"
std::string to_string(Bytes bytes);          ///< "80.0 GiB"
std::string to_string(Bandwidth bandwidth);  ///< "25.0 GB/s"
std::string to_string(FlopRate rate);        ///< "312 TFLOP/s"
std::string to_string(Power power);          ///< "400 W"
std::string to_string(Energy energy);        ///< "3.2 MJ"
std::string to_string(EnergyPerByte cost);   ///< "60 pJ/B"
std::string to_string(Money money);          ///< "2.5 USD"

std::string percent(double share);  ///< "12.3 %"

/// Returns a text for files: parse_value reads back the very same value. It has the shortest of the
/// units in which the number is at least 1: "2.45 us", "300 GB/s", "40 GB" but "80 GiB".
std::string exact_text(Time time);
std::string exact_text(Bytes bytes);
std::string exact_text(Bandwidth bandwidth);
std::string exact_text(FlopRate rate);
std::string exact_text(Power power);
std::string exact_text(Energy energy);
std::string exact_text(EnergyPerByte cost);
std::string exact_text(Money money);
std::string exact_text(double number);
std::string exact_text(bool value);
std::string exact_text(std::int64_t number);
std::string exact_text(int number);
/// Returns the text in double quotes, with YAML's escapes.
std::string exact_text(const std::string& text);
template <class E>
  requires std::is_enum_v<E>
std::string exact_text(E value) {
  return std::string(name_of(value));
}

}  // namespace orrery
