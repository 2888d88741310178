// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace orrery {

/// Messages say this of a Time that is_overflow().
inline constexpr const char* kBeyondTime =
    "takes longer than 106 days, the range of simulated time";

}  // namespace orrery
