// SPDX-License-Identifier: Apache-2.0
#include "machine/memory/pipeline.h"

#include <algorithm>
#include <cassert>

namespace orrery::memory {

Time pipelined_time(std::span<const TransferStage> stages, std::int64_t chunks) {
  assert(chunks >= 1 && "a transfer has a chunk");
  Time sum{0};
  Time longest{0};
  for (const TransferStage& stage : stages) {
    sum += stage.time();
    longest = std::max(longest, stage.time());
  }
  return longest + (sum - longest) / chunks;
}

const TransferStage& slowest(std::span<const TransferStage> stages) {
  assert(!stages.empty() && "a transfer passes a stage");
  return *std::max_element(stages.begin(), stages.end(),
                           [](const auto& a, const auto& b) { return a.time() < b.time(); });
}

Time local_access(Bytes bytes, Bandwidth bandwidth, Time latency) {
  return latency + bytes / bandwidth;
}

}  // namespace orrery::memory
