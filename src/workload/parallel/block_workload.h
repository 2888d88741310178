// SPDX-License-Identifier: Apache-2.0
/// The blocks of a plan without the plan around them: what a bound on many plans is made of.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "workload/parallel/step_list.h"
#include "workload/plan/optimizer.h"
#include "workload/plan/plan.h"
#include "workload/zoo/model.h"

namespace orrery::parallel {

/// Runs of equal blocks, shorter first. What the last block of a run leaves in flight (a reduction
/// beside its weight gradients) is waited for by the block after it, so a longer run is more than
/// the sum of shorter ones.
inline constexpr std::array<int, 2> kBlockRuns{2, 3};

enum class BlockPass : std::uint8_t {
  forward,
  backward,  ///< with what the plan recomputes; of schedules that split it the input gradients
  plain      ///< the same of a layer that recomputes nothing
};
inline constexpr std::size_t kBlockPasses = 3;

/// Returns the plan with everything that does not shape its blocks taken out: plans of one key have
/// blocks of one cost.
plan::Plan block_key(const plan::Plan& plan);

struct BlockLists {
  Draft draft;                    ///< without stages
  std::deque<ChunkDraft> chunks;  ///< runs of one kind of block, which the lists refer to
  std::vector<StepList> lists;
  /// Holds the list of a BlockKind, a BlockPass and a length of the run (kBlockRuns; embedding and
  /// head: one block, in both places).
  std::vector<std::array<std::array<int, kBlockRuns.size()>, kBlockPasses>> templates;
  /// Holds the list of weight gradients by BlockKind and length, for schedules that split the
  /// backward; else none.
  std::vector<std::array<int, kBlockRuns.size()>> weights{};
  /// Holds the list of a forward beside a backward of as many layers of a kind, by length: where
  /// they recompute, then where they do not. For plans that may run passes in pairs; of what is no
  /// layer nothing is in it.
  std::vector<std::array<std::array<int, kBlockRuns.size()>, 2>> pairs{};
};

/// The lowering passes that make blocks: tensor to recompute. Requires a checked plan. Messages of
/// the pipeline, gradients, parameters and copies of activations are left out. Refers to itself.
std::unique_ptr<const BlockLists> list_blocks(const zoo::Model& model, const plan::Plan& plan);

/// BlockWork is the work of a block in a forward and in a backward that recomputes nothing.
struct BlockWork {
  std::vector<graph::Operator> kernels;
  std::vector<graph::Node> collectives;
};

/// Returns the work by BlockKind. It takes the same plans.
std::vector<BlockWork> block_work(const zoo::Model& model, const plan::Plan& plan);

/// OptimizerShare is what one rank's optimizer updates.
struct OptimizerShare {
  std::int64_t whole = 0;     ///< parameters before ZeRO
  std::int64_t local = 0;     ///< E
  Bytes copies{0};            ///< of the local ones as the device stores them
  plan::Matrices matrices{};  ///< of the local ones
};

/// The device's kernels at the end of the step: norm, update unless that is elsewhere, clear
/// (pass_finish.cc).
std::vector<graph::Operator> update_kernels(const plan::Plan& plan, const OptimizerShare& share);

}  // namespace orrery::parallel
