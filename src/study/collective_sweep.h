// SPDX-License-Identifier: Apache-2.0
/// The table of `orrery collective` on any network model.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "collective/sweep.h"
#include "simulate/network_model.h"
#include "simulate/progress.h"

namespace orrery::study {

/// PublishedBandwidth is a bus bandwidth that a report gives (configs/collectives/published.yaml).
struct PublishedBandwidth {
  Bytes from{0};  ///< the least size that it is of
  Bandwidth busbw{0};
  std::string how;
  std::string source;
};

struct SweepTable {
  std::vector<collective::SweepRow> rows;
  /// Reports are those of the same collective over as many devices of the machine.
  std::vector<PublishedBandwidth> published;
  /// Notes say what auto did not take, a line each: what its library does not have (left_out.h),
  /// and what has no messages on this network.
  std::vector<std::string> notes;
};

/// Sweeps a collective on a network. On ports it is sweep_collective, the closed forms, which a
/// collective alone takes there to the picosecond. Others, and machines with a topology: every size
/// simulated. Mistakes: those of sweep_case and of simulate; chunks of themis or hierarchical on
/// another network than ports; those of the file of published bandwidths.
Result<SweepTable> sweep_on(simulate::NetworkModel network, const machine::Machine& machine,
                            const collective::SweepOptions& options,
                            const simulate::Progress& progress = {});

/// Returns the least and the largest bus bandwidth, bytes a second, that the table's largest
/// message has by this prediction and by reports. Requires rows; both are the prediction where no
/// report is of such a message.
std::pair<double, double> bandwidth_band(const SweepTable& table);

}  // namespace orrery::study
