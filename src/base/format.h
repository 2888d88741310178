// SPDX-License-Identifier: Apache-2.0
/// Quantities as people read them; parse_* of base/reader.h reads every one of these back.
#pragma once

#include <string>

#include "base/units.h"

namespace orrery {

std::string to_string(Time time);            ///< "1.234 ms"; 4 significant digits
std::string to_string(Bytes bytes);          ///< "80.0 GiB"
std::string to_string(Bandwidth bandwidth);  ///< "25.0 GB/s"
std::string to_string(FlopRate rate);        ///< "312 TFLOP/s"
std::string to_string(Power power);          ///< "400 W"

}  // namespace orrery
