// SPDX-License-Identifier: Apache-2.0
/// Stage loads are what every stage does for one microbatch at the least: sums of its blocks' costs
/// and, on machines where devices share no links, how long its ports are wanted.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "estimate/block_costs.h"
#include "estimate/placement.h"
#include "estimate/state_costs.h"
#include "workload/memory/block_memory.h"
#include "workload/plan/plan.h"
#include "workload/zoo/model.h"

namespace orrery::estimate {

/// One pass of a chunk for one microbatch.
struct PassTimes {
  Time least{0};  ///< from compute free to compute free, or kernels alone where exchanges may hide
  Time chain{0};  ///< from compute free to compute free
  Time kernels{0};  ///< alone
  Time host{0};     ///< that the host takes to issue it, where it captures no graphs
  Time message{0};  ///< that it sends to another stage, beside those of its stage's other ranks
  Time least_message{0};
};

/// One chunk's passes of one microbatch.
struct ChunkPasses {
  PassTimes forward;
  PassTimes backward;  ///< with its weight gradients
  Time weights{0};     ///< of schedules that split the backward: that part of it
  Bytes kept{0};       ///< by its layers, before offload
  Bytes kept_last{0};  ///< by the last of them, if nothing of the chunk is behind it
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
  Time exchanges{0};  ///< of tokens, where kernels beside them are slower
  std::array<Time, kSlowdowns.size()> by_slowdown{};
  Time host{0};
  Time pair_waits{0};               ///< of a forward beside a backward, beyond their kernels
  PortTimes ports{};                ///< of the blocks' collectives and the messages that it sends
  std::array<CopyUse, 2> copies{};  ///< out, in; load 0: beside the network

  Bytes kept() const;
  /// Returns the mean slowdown of the kernels beside collectives.
  double slowdown() const;
  /// Returns what kernels lose beside a lane that is busy for so long: first the time that they do
  /// not run at all within `path`, then those that lose least.
  Time lost_beside(Time lane, Time path, std::int64_t microbatches) const;
  /// Returns the time of the busiest port over the step. `copied`: activations, one way, of a
  /// microbatch.
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
  bool own_ports = true;        ///< no device uses the links of another; else ports are not summed

  std::vector<StagePasses> all(Placement& placement) const;

 private:
  Bytes kept_by_layer(const plan::ModelPart& part, std::int64_t layer) const;
  PassTimes times_of(const PassCost& cost) const;
  void add_chunk(const plan::ModelPart& part, StagePasses& load) const;
  /// Returns what the pair of a stage's chunks waits for that waits least.
  Time pair_waits(const std::vector<plan::ModelPart>& chunks) const;
  std::int64_t recomputed_of(const plan::ModelPart& part) const {
    return recomputed == 0 ? part.layers : std::max<std::int64_t>(recomputed, 0);
  }
  bool are_alike(const std::vector<plan::ModelPart>& one,
                 const std::vector<plan::ModelPart>& other) const;
  /// A message between stages costs this; by number of its way.
  struct Message {
    Time time{0};
    Time least{0};
    PortTimes ports{};  ///< where each rank puts the same load on the same ports
  };
  using Messages = std::map<int, Message>;
  void add_messages(std::int64_t stage, Placement& placement, Messages& known,
                    StagePasses& load) const;
};

}  // namespace orrery::estimate
