// SPDX-License-Identifier: Apache-2.0
/// Workload on machine -> Timeline, event by event.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "collective/cost.h"
#include "graph/workload.h"
#include "machine/faults/faults.h"
#include "machine/machine.h"
#include "simulate/network_model.h"
#include "simulate/progress.h"
#include "simulate/timeline.h"

namespace orrery::simulate {

struct SimulateOptions {
  bool fold = true;  ///< simulate one rank per class of symmetric ranks
  bool record_spans = false;
  /// Nodes that nothing outside touches as one event (chain.h); equal to the picosecond without.
  /// Off with faults, and then no rank stands for others.
  bool shortcuts = true;
  bool record_messages = false;  ///< Timeline::messages
  std::int64_t warm_steps = 0;   ///< of a run of several: left out of Timeline's means
  faults::FaultPlan faults = {};
  NetworkModel network = NetworkModel::ports;
  collective::AlgorithmChoice algorithms = {};
  Progress progress = {};
};

/// Requires a verified workload and `machine` of exactly workload.ranks devices (with_devices).
/// Mistakes: a deadlock (names the waiting nodes), a time beyond the range of Time, collectives
/// that the network model has no messages for; faults of what there is not, or of links where the
/// network model has no rates. With faults a run that comes to no end is Timeline::stopped.
Result<Timeline> simulate(const graph::Workload& workload, const machine::Machine& machine,
                          const SimulateOptions& options = {});

}  // namespace orrery::simulate
