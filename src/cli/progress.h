// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace orrery::cli {

/// Says how far a run is. Nothing is done or known where `share` or `events` is 0.
struct ProgressState {
  double share = 0;          ///< of the work, in [0, 1]
  double elapsed_s = 0;      ///< since it began
  std::uint64_t events = 0;  ///< of the simulation, so far
};

/// Returns "simulating [####    ]  12 %, 3 s, about 25 s left, about 1.9 G events": time and events
/// as if the rest went like what is done.
std::string progress_line(const std::string& what, const ProgressState& state);

/// Returns the same in one sentence where there is no terminal, for work that will take a minute or
/// more. Empty for less, and until it can be told: after ten seconds.
std::string progress_remark(const std::string& what, const ProgressState& state);

/// A bar on standard error, only if that is a terminal and the work has taken two seconds. Gone
/// without a trace when destroyed. Without a terminal one remark, of long work only.
class ProgressBar {
 public:
  explicit ProgressBar(std::string what = "simulating");
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  /// `share` in [0, 1] of the work is done.
  void update(double share, std::uint64_t events = 0);

 private:
  using Clock = std::chrono::steady_clock;
  std::string what_;
  Clock::time_point begin_ = Clock::now();
  Clock::time_point next_;  ///< when to draw again
  bool terminal_ = false;
  bool drawn_ = false;
};

}  // namespace orrery::cli
