// SPDX-License-Identifier: Apache-2.0
/// Static memory footprint of every pipeline stage.
#pragma once

#include <array>
#include <vector>

#include "base/names.h"
#include "base/result.h"
#include "base/units.h"
#include "machine/machine.h"
#include "workload/parallel/plan.h"
#include "workload/zoo/model.h"

namespace orrery {

enum class MemoryCategory : std::uint8_t { parameters, gradients, optimizer, activations, buffers,
                                           logits };
inline constexpr int kMemoryCategoryCount = 6;
template <>
inline constexpr auto kNames<MemoryCategory> = std::to_array<Named<MemoryCategory>>({
    {MemoryCategory::parameters, "parameters", "in the compute data type"},
    {MemoryCategory::gradients, "gradients", "accumulation buffer"},
    {MemoryCategory::optimizer, "optimizer", "fp32 master parameters and Adam's two moments"},
    {MemoryCategory::activations, "activations", "kept for backward, all microbatches in flight"},
    {MemoryCategory::buffers, "buffers", "communication buckets, gathered parameters, workspaces"},
    {MemoryCategory::logits, "logits", "fp32 logits and their gradient on the last stage"},
});

struct StageMemory {
  std::array<Bytes, kMemoryCategoryCount> bytes{};
  double microbatches_in_flight = 0;  ///< at the peak; chunks count 1/v each

  Bytes operator[](MemoryCategory c) const { return bytes[static_cast<std::size_t>(c)]; }
  Bytes& operator[](MemoryCategory c) { return bytes[static_cast<std::size_t>(c)]; }
  Bytes total() const;
};

/// One per stage (per device of the stage).
Result<std::vector<StageMemory>> memory_footprint(const Model& model, const Plan& plan);

/// A mistake per stage whose total exceeds the device's first memory tier.
Result<void> check_fits(const std::vector<StageMemory>& stages, const Machine& machine);

}  // namespace orrery
