// SPDX-License-Identifier: Apache-2.0
/// The table of `orrery collective` on any network model.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "collective/sweep.h"
#include "simulate/network_model.h"
#include "simulate/progress.h"

namespace orrery::study {

struct SweepTable {
  std::vector<collective::SweepRow> rows;
  /// Notes say what auto did not take, a line each: what its library does not have (left_out.h),
  /// and what has no messages on this network.
  std::vector<std::string> notes;
};

/// ports: sweep_collective, the closed forms, which a collective alone takes there to the
/// picosecond. Others, and machines with a topology: every size simulated. Mistakes: those of
/// sweep_case and of simulate; chunks of themis or hierarchical on another network than ports.
Result<SweepTable> sweep_on(simulate::NetworkModel network, const machine::Machine& machine,
                            const collective::SweepOptions& options,
                            const simulate::Progress& progress = {});

}  // namespace orrery::study
