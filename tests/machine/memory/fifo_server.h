// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "base/units.h"

namespace orrery::testing {

/// The reference for closed forms: serves one access after the other, in the order of arrival.
class FifoServer {
 public:
  /// Returns when an access that arrives at `arrival` and takes `service` is done.
  Time serve(Time arrival, Time service) {
    free_ = std::max(arrival, free_) + service;
    return free_;
  }

 private:
  Time free_{0};
};

}  // namespace orrery::testing
