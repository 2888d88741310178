// SPDX-License-Identifier: Apache-2.0
/// Where all stages are at the end of a round, and whether that is where they were before.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "estimate/stage_state.h"

namespace orrery::estimate {

/// A stage relative to the round it is in.
struct StageMark {
  std::int64_t behind = 0;  ///< instances that it has left of the round
  Clocks clocks{};
  std::array<std::vector<Time>, plan::kChannelCount> arrivals;
  std::vector<Communication> beside;
  std::vector<Ports::Flight> flights;
  std::array<Window, kWindows> windows{};
  StageTime time;
};
using Mark = std::vector<StageMark>;

/// Forgets what is over first. Nothing while a stage is in the middle of an instance.
std::optional<Mark> mark_of(std::vector<Stage>& stages);

/// By how much `now` is later than `before` if they are else the same; clocks other than compute
/// may have fallen back. `contends`: communication slows kernels, so windows count.
std::optional<Time> shift(const Mark& before, const Mark& now, bool contends);

/// Two marks that are the same but for a shift.
struct Period {
  const Mark& before;
  const Mark& now;
};
/// From `now` as many periods on, in which every stage issues so many instances.
void jump(std::vector<Stage>& stages, const Period& period, std::int64_t times,
          std::int64_t instances);

}  // namespace orrery::estimate
