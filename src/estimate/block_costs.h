// SPDX-License-Identifier: Apache-2.0
/// The least times of a plan's blocks, and sums of them over consecutive layers.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/result.h"
#include "estimate/block_timer.h"
#include "estimate/prices.h"
#include "workload/parallel/block_workload.h"
#include "workload/plan/model_parts.h"
#include "workload/plan/plan.h"
#include "workload/zoo/model.h"

namespace orrery::estimate {

class BlockCosts {
 public:
  /// Requires parallel::block_key() of a checked plan, and where its ranks lie.
  static BlockCosts of(const zoo::Model& model, const plan::Plan& key, Placement& placement,
                       Prices& prices, Sharing sharing = Sharing::alone);

  /// The cost of a chunk of the model; the first `recomputed` layers of it recompute what the plan
  /// says. A backward has its weight gradients in it, also where the schedule splits them off.
  PassCost forward(const plan::ModelPart& part) const;
  PassCost backward(const plan::ModelPart& part, std::int64_t recomputed) const;
  /// Returns the least that any cut of the model into so many chunks takes: all of its passes,
  /// nothing recomputed. The chain's time is a lower bound, the rest is exact.
  PassCost all_passes(std::int64_t layers, std::int64_t chunks) const;
  /// Returns what compute waits for, and loses beside exchanges, while a forward runs beside a
  /// backward of other layers whose first so many recompute, layer by layer: beyond the kernels of
  /// both. 0 for plans without such pairs.
  Time pair_waits(const plan::ModelPart& forward, const plan::ModelPart& backward,
                  std::int64_t recomputed) const;
  /// Returns the weight gradients of schedules that split the backward; else nothing.
  PassCost weights(const plan::ModelPart& part) const;

 private:
  /// Runs of one kind of block. A run of n layers takes n each + begin.
  struct Run {
    PassCost each;
    Time begin{0};  ///< of the chain; not above 0
  };
  /// A run of n pairs of layers waits for n each + begin.
  struct PairRun {
    Time each{0};
    Time begin{0};  ///< not above 0
  };
  /// A pass of blocks (BlockPass), or their weight gradients alone.
  static constexpr std::size_t kWeights = parallel::kBlockPasses;
  static constexpr std::size_t kPasses = kWeights + 1;

  PassCost chunk(std::size_t pass, const plan::ModelPart& part) const;
  PassCost ends(std::size_t pass, const plan::ModelPart& part) const;
  PassCost layers(std::size_t pass, std::int64_t first, std::int64_t count) const;

  std::vector<plan::BlockKind> kinds_;                 ///< by layer
  std::vector<std::array<Run, kPasses>> runs_;         ///< by kind
  std::array<std::array<PassCost, kPasses>, 2> ends_;  ///< embedding and head
  std::vector<std::array<PairRun, 2>> pairs_;          ///< by kind, as BlockLists::pairs
};

}  // namespace orrery::estimate
