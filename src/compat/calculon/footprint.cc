// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "base/format.h"
#include "compat/calculon/step.h"

namespace orrery::calculon {
namespace {

/// Microbatches whose activations a stage keeps: as many as there are stages, and those of the
/// chunks that interleaving begins before.
double kept_microbatches(const Execution& execution) {
  const auto stages = static_cast<double>(execution.pipeline_par);
  const auto chunks = static_cast<double>(execution.pipeline_interleaving);
  const double kept = std::min(static_cast<double>(execution.microbatches()), stages);
  return chunks > 1 ? kept * (1 + (stages - 1) / (chunks * stages)) : kept;
}

/// Returns the blocks of the fullest stage.
std::int64_t stage_blocks(const Application& application, const Execution& execution) {
  return (application.num_blocks + execution.pipeline_par - 1) / execution.pipeline_par;
}

/// Ranks of all parallel dimensions on a network.
std::int64_t members_of(const Execution& execution, std::size_t network) {
  std::int64_t members = 1;
  for (const auto& [on, degree] : {std::pair{execution.tensor_par_net, execution.tensor_par},
                                   {execution.pipeline_par_net, execution.pipeline_par},
                                   {execution.data_par_net, execution.data_par}}) {
    members *= on == static_cast<std::int64_t>(network) ? degree : 1;
  }
  return members;
}

}  // namespace

Footprint footprint_of(const Application& application, const Execution& execution,
                       const Block& block) {
  const std::int64_t blocks = stage_blocks(application, execution);
  const double kept = kept_microbatches(execution);
  Footprint held{
      .weights = block.weights * blocks,
      .activations = block.working,
      .checkpoints = block.checkpoint * blocks * kept,
      .gradients = block.gradients,
      .weight_gradients = block.whole_weight_gradients + block.weight_gradients * (blocks - 1),
      .optimizer = block.optimizer_states * blocks};
  if (execution.activation_recompute != Recompute::full) {
    held.activations += block.storage * (static_cast<double>(blocks) * kept - 1);
  }
  const auto put = [&](bool away, Bytes all, Bytes of_two_blocks) {
    held.first_tier += away ? of_two_blocks : all;
    held.second_tier += away ? all : Bytes(0);
  };
  put(execution.weight_offload, held.weights, block.weights * 2);
  if (execution.activations_offload) {
    held.first_tier += block.working + block.storage + block.checkpoint * 2;
    held.second_tier +=
        execution.activation_recompute == Recompute::full ? held.checkpoints : held.activations;
  } else {
    held.first_tier += held.activations + held.checkpoints;
  }
  put(execution.optimizer_offload, held.optimizer, block.optimizer_states * 2);
  if (execution.optimizer_offload) {
    held.first_tier += block.whole_weight_gradients + block.weight_gradients;
    held.second_tier += block.weight_gradients * blocks;
  } else {
    held.first_tier += held.weight_gradients;
  }
  held.first_tier += held.gradients;
  return held;
}

bool fits(const System& system, const Footprint& footprint) {
  return footprint.first_tier <= system.memory.capacity &&
         footprint.second_tier <= system.lower_memory.capacity;
}

bool can_run(const Application& application, const System& system, const Execution& execution) {
  constexpr std::int64_t kOffloadedBlocks = 3;
  if ((execution.weight_offload || execution.activations_offload || execution.optimizer_offload) &&
      stage_blocks(application, execution) < kOffloadedBlocks) {
    return false;
  }
  const auto networks = static_cast<std::int64_t>(system.networks.size());
  if (execution.tensor_par_net >= networks || execution.pipeline_par_net >= networks ||
      execution.data_par_net >= networks) {
    return false;
  }
  for (std::size_t i = 0; i < system.networks.size(); ++i) {
    const std::int64_t members = members_of(execution, i);
    const Network& network = system.networks[i];
    if (members > 1 &&
        (members > network.size || (network.must_be_filled && network.size % members != 0))) {
      return false;
    }
  }
  return true;
}

Result<Run> run(const Application& application, const System& system, const Execution& execution) {
  if (!can_run(application, system, execution)) {
    return fail(
        "a network is not there, smaller than its groups or not filled by them, or something is "
        "offloaded from stages of fewer than 3 blocks");
  }
  const Block block = block_of(application, system, execution);
  Run run{.step = step_of(application, system, execution, block),
          .footprint = footprint_of(application, execution, block)};
  if (run.footprint.first_tier > system.memory.capacity) {
    return fail("the first memory needs " + to_string(run.footprint.first_tier) + ", has " +
                to_string(system.memory.capacity));
  }
  if (run.footprint.second_tier > system.lower_memory.capacity) {
    return fail("the second memory needs " + to_string(run.footprint.second_tier) + ", has " +
                to_string(system.lower_memory.capacity));
  }
  return run;
}

}  // namespace orrery::calculon
