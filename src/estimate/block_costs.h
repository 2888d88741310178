// SPDX-License-Identifier: Apache-2.0
/// The least times of a plan's blocks, and sums of them over consecutive layers.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/result.h"
#include "estimate/prices.h"
#include "machine/machine.h"
#include "workload/parallel/block_workload.h"
#include "workload/plan/axes.h"
#include "workload/plan/model_parts.h"
#include "workload/plan/plan.h"
#include "workload/zoo/model.h"

namespace orrery::estimate {

/// Lanes of the collectives inside blocks: tp, cp and its parts, ep, etp.
inline constexpr std::size_t kBlockLanes = *plan::stream_of(plan::Axis::cp_ring) + 1;

/// How much slower kernels are beside a collective, rounded down to one of these.
inline constexpr std::array<double, 6> kSlowdowns{1, 1.04, 1.08, 1.12, 1.16, 1.24};

struct PassCost {
  Time chain{0};    ///< from compute free to compute free
  Time kernels{0};  ///< alone
  std::array<Time, kBlockLanes> lanes{};
  std::array<Time, kSlowdowns.size()> by_slowdown{};  ///< of kernels
  PortTimes ports{};                                  ///< of its collectives

  PassCost& operator+=(const PassCost& other);
  PassCost& operator-=(const PassCost& other);
};
PassCost operator*(PassCost cost, std::int64_t times);

/// The plan with everything that does not shape its blocks taken out: plans of one key have blocks
/// of one cost.
plan::Plan block_key(const plan::Plan& plan);

class BlockCosts {
 public:
  /// Requires block_key() of a checked plan, and a machine of its devices.
  static BlockCosts of(const zoo::Model& model, const plan::Plan& key,
                       const machine::Machine& machine, Prices& prices);

  /// Of a chunk of the model; the first `recomputed` layers of it recompute what the plan says.
  PassCost forward(const plan::ModelPart& part) const;
  PassCost backward(const plan::ModelPart& part, std::int64_t recomputed) const;

 private:
  /// Of one kind of block. A run of n layers takes n each + begin.
  struct Run {
    PassCost each;
    Time begin{0};  ///< of the chain; not above 0
  };
  PassCost ends(parallel::BlockPass pass, const plan::ModelPart& part) const;
  PassCost layers(parallel::BlockPass pass, std::int64_t first, std::int64_t count) const;

  std::vector<plan::BlockKind> kinds_;                         ///< by layer
  std::vector<std::array<Run, parallel::kBlockPasses>> runs_;  ///< by kind
  std::array<PassCost, 2 * parallel::kBlockPasses> ends_;      ///< embedding and head, by pass
};

}  // namespace orrery::estimate
