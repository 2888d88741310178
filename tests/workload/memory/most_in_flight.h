// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "workload/plan/schedule.h"

namespace orrery::footprint {

/// The most that is in flight on a stage, whose forward has run and whose weight gradients are not
/// there; a piece of a chunk weighs as much as is given.
inline double most_in_flight(const plan::PipelineShape& shape, std::int64_t stage,
                             const std::vector<double>& weights) {
  using plan::Direction;
  const plan::StageSchedule schedule(shape, stage);
  double now = 0;
  double most = 0;
  for (std::int64_t i = 0; i < schedule.size(); ++i) {
    const plan::PipelineSlot slot = schedule[i];
    const double weight = weights[static_cast<std::size_t>(slot.chunk)];
    const bool both = slot.direction == Direction::forward_backward;
    now += slot.direction == Direction::forward || both ? weight : 0;
    most = std::max(most, now);
    now -= both ? weights[static_cast<std::size_t>(slot.backward_chunk)]
           : slot.direction == Direction::backward || slot.direction == Direction::weight_gradient
               ? weight
               : 0;
  }
  return most;
}

}  // namespace orrery::footprint
