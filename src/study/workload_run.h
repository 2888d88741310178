// SPDX-License-Identifier: Apache-2.0
/// A workload from anywhere, run on a machine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "collective/cost.h"
#include "graph/workload.h"
#include "machine/machine.h"
#include "simulate/simulate.h"
#include "study/memory_over_time.h"

namespace orrery::study {

struct PassTime {
  std::string name;
  double seconds = 0;
};

struct WorkloadRun {
  std::string name;          ///< what ran: a model, the files of traces
  machine::Machine machine;  ///< with its outermost dimension fitted to `devices`
  std::int64_t devices = 0;
  simulate::NetworkModel network = simulate::NetworkModel::ports;
  simulate::Timeline timeline;
  std::int64_t warm_steps = 0;   ///< SimulateOptions::warm_steps
  double wall_s = 0;             ///< of the whole run, in this process
  std::vector<PassTime> passes;  ///< wall time: "lower" (or each pass), "simulate"
  /// The peaks of memory by simulated rank; empty unless spans are recorded and the workload
  /// allocates memory.
  std::vector<RankPeak> peaks{};
  graph::Workload workload;                  ///< names of templates and nodes, for traces
  collective::AlgorithmChoice algorithms{};  ///< of the collectives of each group
};

/// Runs a verified workload, on as many devices of the machine as it has ranks. Mistakes: too many
/// ranks for the machine, copies to memory that it does not have, those of simulate().
Result<WorkloadRun> run_workload(const std::string& name, graph::Workload workload,
                                 const machine::Machine& machine,
                                 const simulate::SimulateOptions& options);

}  // namespace orrery::study
