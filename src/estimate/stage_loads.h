// SPDX-License-Identifier: Apache-2.0
/// What every stage does for one microbatch at the least: sums of its blocks' costs and, on
/// machines where devices share no links, how long its ports are wanted.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "estimate/block_costs.h"
#include "estimate/placement.h"
#include "estimate/state_costs.h"
#include "workload/memory/block_memory.h"
#include "workload/plan/plan.h"
#include "workload/zoo/model.h"

namespace orrery::estimate {

/// One chunk's passes of one microbatch.
struct ChunkPasses {
  Time forward{0};
  Time backward{0};
  Bytes kept{0};  ///< by its layers, before offload
};

/// A port of the network that copies to or from the host go through as well.
struct CopyUse {
  std::size_t port = 0;
  double load = 0;
};

struct StagePasses {
  std::vector<ChunkPasses> chunks;
  Time kernels{0};
  std::array<Time, kBlockLanes> lanes{};
  std::array<Time, kSlowdowns.size()> by_slowdown{};
  PortTimes ports{};                ///< of the blocks' collectives and the messages that it sends
  std::array<CopyUse, 2> copies{};  ///< out, in; load 0: beside the network

  Bytes kept() const;
  /// What kernels lose beside a lane that is busy for so long: first the time that they do not run
  /// at all within `path`, then those that lose least.
  Time lost_beside(Time lane, Time path, std::int64_t microbatches) const;
  /// Of the busiest port over the step. `copied`: activations, one way, of a microbatch.
  Time on_ports(const StageState& state, Time copied, std::int64_t microbatches) const;
};

struct StageLoads {
  const zoo::Model& model;
  const plan::Plan& plan;
  const BlockCosts& blocks;
  const footprint::BlockMemories& memories;
  const StageParts& parts;
  std::int64_t recomputed = 0;  ///< layers of a chunk, 0: all; below 0: none
  bool hides = false;           ///< what a block waits for may be hidden: kernels alone

  /// `placement`: null where devices share links; ports are not looked at then.
  std::vector<StagePasses> all(Placement* placement) const;

 private:
  Bytes kept_by_layers(const plan::ModelPart& part) const;
  void add_chunk(const plan::ModelPart& part, StagePasses& load) const;
  void add_messages(std::int64_t stage, Placement& placement, PortTimes& ports) const;
};

}  // namespace orrery::estimate
