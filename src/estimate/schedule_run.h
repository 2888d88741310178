// SPDX-License-Identifier: Apache-2.0
/// Says when the stages of a pipeline schedule end whose pieces of work take given times.
///
///   begin    max(end of the stage's piece before, arrival of what the piece waits for)
///   end      begin + time;  of a forward beside a backward the sum of both, and both arrive
///   arrival  max(end, last message of the sender there) + message
///
/// The schedule is a maximum over paths of sums of these times: it grows with each of them, so that
/// times which no run is faster than give an end that no run is before.
#pragma once

#include <cstdint>
#include <vector>

#include "base/units.h"
#include "workload/plan/schedule.h"

namespace orrery::estimate {

/// The times of one chunk on one stage, for one microbatch.
struct PieceTimes {
  Time forward{0};
  Time backward{0};        ///< of schedules that split it: the input gradients
  Time weights{0};         ///< of those: the weight gradients
  Time paired_forward{0};  ///< beside a backward
  Time paired_backward{0};
  Time activations{0};  ///< message to the next part of the model; zero: to the same stage
  Time gradients{0};    ///< and to the part before
};

struct ScheduleTimes {
  plan::PipelineShape shape;
  std::vector<std::vector<PieceTimes>> pieces;  ///< [stage][chunk]
  bool waits_for_sends = false;                 ///< compute waits for the stage's own messages
};

struct StageEnds {
  Time begin{0};                      ///< of its first piece
  Time end{0};                        ///< of its last
  Time busy{0};                       ///< sum of its pieces
  std::vector<Time> last_backward{};  ///< end, by chunk
};

/// Returns, by stage, when its work ends.
std::vector<StageEnds> run_schedule(const ScheduleTimes& times);

/// Pieces of work of all stages: what a run takes time for.
std::int64_t pieces_of(const plan::PipelineShape& shape);

}  // namespace orrery::estimate
