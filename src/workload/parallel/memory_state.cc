// SPDX-License-Identifier: Apache-2.0
#include "workload/parallel/memory_state.h"

#include <algorithm>

#include "workload/parallel/layout.h"
#include "workload/parallel/schedule.h"

namespace orrery {
namespace {

/// Bytes of `elements`, which `dense` and `expert` ranks share.
Bytes shared(DataType type, OwnedParameters owned, std::int64_t dense, std::int64_t expert) {
  return bytes_of(type, owned.dense) / dense + bytes_of(type, owned.expert) / expert;
}

/// Whether the optimizer keeps parameters of its own.
bool has_master(const Plan& plan) {
  return bits_of(plan.compute_type) < bits_of(DataType::fp32) &&
         plan.master_type != plan.compute_type;
}

}  // namespace

OwnedParameters owned_parameters(const BlockMemories& model, const Plan& plan, BlockKind kind) {
  const BlockMemory& block = model.blocks[kind];
  const std::int64_t copy = kind == kHeadBlock && !ends_meet(plan) ? model.tied_copy : 0;
  return {block.parameters - block.expert_parameters + copy, block.expert_parameters};
}

Bytes bucket_bytes(const Plan& plan, Bytes all, Bytes block) {
  if (!plan.overlap_grad_reduce && plan.bucket == Bytes(0)) {
    return all;  // one buffer
  }
  return std::min(all, std::max(block, plan.bucket) * (plan.overlap_grad_reduce ? 2 : 1));
}

StateMemory state_memory(const BlockMemories& model, const Plan& plan,
                         const std::vector<StageChunk>& chunks) {
  OwnedParameters owned;
  Bytes largest{0};
  for (const StageChunk& chunk : chunks) {
    for (const BlockKind kind : chunk.blocks) {
      const OwnedParameters block = owned_parameters(model, plan, kind);
      owned += block;
      largest = std::max(largest, bytes_of(plan.grad_reduce_type, block.dense + block.expert));
    }
  }
  const ShardDegrees degrees = shard_degrees(plan);
  const std::int64_t experts = expert_data_parallel(plan);
  const auto of = [&](DataType type, std::int64_t dense, int stage) {
    return shared(type, owned, dense, plan.zero >= stage ? experts : 1);
  };
  StateMemory state;
  state.device[MemoryCategory::parameters] = of(plan.compute_type, degrees.params, 3);
  state.device[MemoryCategory::gradients] = of(plan.grad_type, degrees.grads, 2);
  const Bytes states = 2 * of(plan.moment_type, degrees.optimizer, 1) +
                       (has_master(plan) ? of(plan.master_type, degrees.optimizer, 1) : Bytes(0));
  const bool copies = bits_of(plan.grad_type) < bits_of(DataType::fp32);
  const Bytes gradients = of(DataType::fp32, degrees.optimizer, 1);
  if (plan.offload_optimizer == Offload::none) {
    state.device[MemoryCategory::optimizer] = states;
    state.update = copies ? gradients : Bytes(0);
  } else {
    state.lower[plan.offload_optimizer == Offload::cpu ? 0 : 1] = states + gradients;
  }
  if (plan.dp * plan.cp > 1 && plan.zero < 2 && plan.grad_reduce_type != plan.grad_type) {
    const Bytes all = bytes_of(plan.grad_reduce_type, owned.dense + owned.expert);
    state.reduction = bucket_bytes(plan, all, largest);
  }
  return state;
}

}  // namespace orrery
