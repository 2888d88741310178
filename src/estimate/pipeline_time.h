// SPDX-License-Identifier: Apache-2.0
/// The formulas of the pipeline schedules (estimate.h).
#pragma once

#include <vector>

#include "estimate/chunk_cost.h"
#include "workload/plan/schedule.h"

namespace orrery {

struct StageTime {
  ChunkCost work;  ///< of one microbatch, all chunks of the stage
  ChunkCost
      edge;      ///< of its chunk that fills and drains the pipeline; all of it unless interleaved
  Time next{0};  ///< one message to or from the next stage; the last one's next is the first
};

struct PipelineTime {
  Time total{0};          ///< until the last backward of the first stage
  Time busy{0};           ///< of the stage that decides it
  Time kernels{0};        ///< of that stage
  std::vector<Time> end;  ///< of the last backward, by stage
};

struct Messaging {
  bool waits = true;      ///< compute waits for its own sends
  double contention = 1;  ///< slowdown of kernels beside messages
};

/// Kernels slow down by `contention` beside messages. A pass before or after which the host waits
/// for the device begins with both at the same moment.
/// The result's vector is reused.
void time_pipeline(const std::vector<StageTime>& stages, const PipelineShape& shape,
                   const Messaging& messaging, PipelineTime& result);

}  // namespace orrery
