// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <csignal>
#include <optional>
#include <utility>

namespace orrery::cli {

/// While an Interrupt lives, SIGINT and SIGTERM end the work instead of the process: what takes
/// long asks going_on() between its pieces, and prints what there is. The same signal once more
/// ends the process. There is one at a time.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  /// Returns one for work that ends early, nothing for other work.
  static std::optional<Interrupt> around(bool ends_early) {
    return ends_early ? std::optional<Interrupt>(std::in_place) : std::nullopt;
  }
  /// Returns whether no such signal has come. Any thread may call it.
  static bool going_on();
  /// Returns the exit status of a process that a signal has ended, 128 and the signal's number (130
  /// for SIGINT, 143 for SIGTERM); `otherwise` if none has come.
  static int status(int otherwise);

 private:
  std::array<struct sigaction, 2> before_{};  ///< by place in kSignals
};

}  // namespace orrery::cli
