// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "workload/plan/schedule.h"

namespace orrery::estimate {

/// Passes that no pass of another microbatch runs beside, by chunk: forwards, and backwards of both
/// gradients at once.
struct LonePasses {
  std::vector<std::int64_t> forwards;
  std::vector<std::int64_t> backwards;
};
/// Counts those of a stage; of the part that repeats one period is looked at.
LonePasses lone_passes(const plan::PipelineShape& shape, std::int64_t stage);

}  // namespace orrery::estimate
