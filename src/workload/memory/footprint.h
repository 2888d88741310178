// SPDX-License-Identifier: Apache-2.0
/// Memory of every pipeline stage, per device, at its fullest moment of the step.
///
///   block_memory.h     what an embedding, layer or head keeps, per microbatch
///   state_memory.h     parameters, gradients, optimizer states
///   memory_timeline.h  the step: which of these exist when
///
/// On a machine also what its framework takes, all the step (framework_bytes).
///
/// Ignores: fragmentation, but for the hole that reserve_bytes() counts.
#pragma once

#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "machine/machine.h"
#include "workload/memory/block_memory.h"
#include "workload/memory/memory_timeline.h"
#include "workload/memory/state_memory.h"
#include "workload/plan/memory_category.h"
#include "workload/plan/plan.h"
#include "workload/zoo/model.h"

namespace orrery::footprint {

struct StageMemory {
  graph::MemoryBytes bytes;           ///< at the fullest moment
  MemoryMoment moment;                ///< which that is
  bool chunked = false;               ///< the stage has several chunks, which moments name
  graph::MemoryBytes highest;         ///< of each category on its own, over the step
  graph::LowerTiers lower{};          ///< most on the host and on its storage
  double microbatches_in_flight = 0;  ///< most; chunks count by their share of the stage
  std::vector<MemoryPoint> timeline;  ///< of at most kTimelinePoints pieces of work
  std::size_t part = 0;               ///< of the machine, on whose devices it is
  Bytes capacity{0};                  ///< of the device; 0: of no machine

  Bytes operator[](plan::MemoryCategory c) const { return bytes[c]; }
  Bytes& operator[](plan::MemoryCategory c) { return bytes[c]; }
  Bytes total() const { return bytes.total(); }
  /// Returns what tensors take: PyTorch's max_memory_allocated. total() is what the driver shows.
  Bytes tensors() const { return total() - bytes[plan::MemoryCategory::framework]; }
  /// Returns whether total() is so near the capacity that the verdict may be wrong: within 5 %, the
  /// error of predicted peaks of frameworks whose tables are checked (docs/fidelity.md).
  bool is_close_call() const {
    constexpr double kMargin = 0.05;
    return capacity > Bytes(0) && total() > capacity * (1 - kMargin) &&
           total() < capacity * (1 + kMargin);
  }
};
inline constexpr std::int64_t kTimelinePoints = 64;

/// Returns one entry per stage (per device of the stage); where devices or shares of the batch
/// differ between its ranks, of those with the least room left. Mistakes: those of check().
Result<std::vector<StageMemory>> memory_footprint(const zoo::Model& model, const plan::Plan& plan,
                                                  const machine::Machine* machine = nullptr);

/// Returns the same of a plan that check() has accepted.
std::vector<StageMemory> memory_of_checked(const zoo::Model& model, const plan::Plan& plan);

/// Returns the memory of one stage of a checked plan.
StageMemory stage_memory(const BlockMemories& blocks, const plan::Plan& plan, std::int64_t stage,
                         const std::vector<StageChunk>& chunks);

struct Fullest {
  Bytes total{0};  ///< of the fullest stage
  bool fits = false;
};

/// Returns what memory_footprint() and check_fits() say of a checked plan, without categories and
/// moments. Of stages with equal chunks only the first one is looked at where later_hold_less().
/// Who asks of very many plans: memory_tables.h.
Fullest fullest(const zoo::Model& model, const plan::Plan& plan, const machine::Machine& machine);

/// Returns whether a stage fits on a machine whose devices are all alike, as check_fits() finds it.
bool fits(const MostHeld& most, const machine::Machine& machine);

/// Reports a mistake per stage and memory tier that is too small or absent.
Result<void> check_fits(const std::vector<StageMemory>& stages, const machine::Machine& machine);

}  // namespace orrery::footprint
