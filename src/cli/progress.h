// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

namespace orrery::cli {

/// A bar on standard error, only if that is a terminal and the work has taken two seconds. Gone
/// without a trace when destroyed.
class ProgressBar {
 public:
  ProgressBar();
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  /// `share` in [0, 1] of the work is done.
  void update(double share);

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point begin_ = Clock::now();
  Clock::time_point next_;  ///< when to draw again
  bool terminal_ = false;
  bool drawn_ = false;
};

}  // namespace orrery::cli
