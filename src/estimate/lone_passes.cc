// SPDX-License-Identifier: Apache-2.0
#include "estimate/lone_passes.h"

#include <algorithm>

namespace orrery::estimate {

LonePasses lone_passes(const plan::PipelineShape& shape, std::int64_t stage) {
  const plan::StageSchedule schedule(shape, stage);
  const auto chunks = static_cast<std::size_t>(shape.chunks);
  LonePasses lone{.forwards = std::vector<std::int64_t>(chunks),
                  .backwards = std::vector<std::int64_t>(chunks)};
  const auto add = [&](std::int64_t first, std::int64_t end, std::int64_t times) {
    for (std::int64_t i = first; i < end; ++i) {
      const plan::PipelineSlot slot = schedule[i];
      const auto chunk = static_cast<std::size_t>(slot.chunk);
      lone.forwards[chunk] += slot.direction == plan::Direction::forward ? times : 0;
      lone.backwards[chunk] += slot.direction == plan::Direction::backward ? times : 0;
    }
  };
  const graph::Period again = schedule.period().value_or(graph::Period{});
  const std::int64_t times = (again.end - again.first) / again.length;
  add(0, again.first, 1);
  add(again.first, again.first + std::min<std::int64_t>(times, 1) * again.length, times);
  add(again.first + times * again.length, schedule.size(), 1);
  return lone;
}

}  // namespace orrery::estimate
