// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/result.h"
#include "calibrate/collectives.h"

namespace orrery::calibrate {

inline constexpr double kShortestMicroseconds = 1e-6;  // a picosecond, the unit of Time
inline constexpr double kLongestMicroseconds = 1e9;
inline constexpr const char* kMicrosecondsExpected = "a time in microseconds, 1e-6 to 1e9";

/// Returns a mistake of `source` for every measurement in which the links of its group, half as
/// fast again as the machine states (in-switch reduction moves less), cannot move the bytes:
///
///   time < size * bus factor / (1.5 * bandwidth of all links of a member)
Error impossible_times(const std::vector<CollectiveMeasurement>& measurements,
                       const machine::Machine& machine, const std::string& source);

}  // namespace orrery::calibrate
