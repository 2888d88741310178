// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>

namespace orrery::simulate {

/// Called now and then with the share of the run's instances issued so far, and with the events of
/// which its statistics will tell (Timeline::events).
using Progress = std::function<void(double share, std::uint64_t events)>;

}  // namespace orrery::simulate
