// SPDX-License-Identifier: Apache-2.0
/// Statistics tell what the ranks of a run were busy with.
#pragma once

#include <optional>
#include <vector>

#include "base/units.h"
#include "compat/astra/run.h"

namespace orrery::astra {

/// Holds times during which at least one node of a kind ran: nodes that run at once count once.
struct Statistics {
  Time wall{0};  ///< when the last node ended
  Time cpu{0};
  Time gpu{0};
  Time communication{0};  ///< collectives, sends, receives
  Time remote_memory{0};
  Time overlap{0};  ///< GPU and communication at once

  /// Roofline describes the computation on the GPU under roofline, weighted by time.
  struct Roofline {
    double compute_bound = 0;        ///< share of the time at peak
    double compute_utilisation = 0;  ///< of the peak
    double memory_utilisation = 0;   ///< of the local memory's bandwidth
    double intensity = 0;            ///< operations per byte
  };
  std::optional<Roofline> roofline;  ///< absent without roofline or computation
};

/// Returns the statistics of each class's lowest rank. Requires a result with node_times.
///
/// Source: ASTRA-sim's statistics (518bd51), whose CPU nodes have no part in the shares here.
std::vector<Statistics> statistics(const RunInput& input, const RunResult& result);

}  // namespace orrery::astra
