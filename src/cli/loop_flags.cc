// SPDX-License-Identifier: Apache-2.0
#include "cli/loop_flags.h"

namespace orrery::cli {

void LoopFlags::declare(Options& options) {
  options.flag("--allow-oom", allow_oom_, "go on although a stage does not fit in memory");
  options.flag("--no-fold", no_fold_, "simulate every rank, also those that mirror another");
  options.flag("--no-shortcuts", no_shortcuts_,
               "simulate every node on its own, every microbatch too");
  network_.declare(options);
}

}  // namespace orrery::cli
