// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/command.h"
#include "cli/network_flag.h"

namespace orrery::cli {

/// --allow-oom, --no-fold, --no-shortcuts and --network of the commands that run the event loop
/// once or many times.
class LoopFlags {
 public:
  void declare(Options& options);
  /// The fields of these names: of study::RunOptions, study::ExplainOptions and the like.
  template <class HowToRun>
  void read(HowToRun& how, Error& mistakes) const {
    how.allow_oom = allow_oom_;
    how.fold = !no_fold_;
    how.shortcuts = !no_shortcuts_;
    how.network = network_.read(mistakes);
  }

 private:
  NetworkFlag network_;
  bool allow_oom_ = false;
  bool no_fold_ = false;
  bool no_shortcuts_ = false;
};

}  // namespace orrery::cli
