// SPDX-License-Identifier: Apache-2.0
/// The allocations of a stage, which are those of its footprint (workload/memory).
#include "workload/memory/chunk_work.h"
#include "workload/memory/state_memory.h"
#include "workload/parallel/passes.h"

namespace orrery {
namespace {

std::vector<ChunkPass> passes_of(Schedule schedule) {
  std::vector<ChunkPass> passes{ChunkPass::forward};
  if (!splits_backward(schedule) || schedule == Schedule::dualpipe) {
    passes.push_back(ChunkPass::backward);
  }
  if (splits_backward(schedule)) {
    passes.push_back(ChunkPass::input_gradient);
    passes.push_back(ChunkPass::weight_gradient);
  }
  return passes;
}

void append(std::string_view name, MemoryCategory category, Bytes bytes, int tier,
            std::vector<Tensor>& state) {
  if (bytes > Bytes(0)) {
    state.push_back({.name = std::string(name),
                     .bytes = bytes,
                     .layout = {},
                     .memory = category,
                     .lifetime = Tensor::Lifetime::run,
                     .tier = tier});
  }
}

std::vector<Tensor> tensors_of(const StateMemory& memory) {
  constexpr std::array<int, kLowerTierCount> kTiers = {1, 2, kRemoteTier};
  std::vector<Tensor> state;
  for (const auto& category : kNames<MemoryCategory>) {
    append(category.name, category.value, memory.device[category.value], 0, state);
  }
  for (std::size_t lower = 0; lower < kTiers.size(); ++lower) {
    append("offloaded", MemoryCategory::optimizer, memory.lower[lower], kTiers[lower], state);
  }
  return state;
}

}  // namespace

void passes::memory(Draft& draft, const Context& context) {
  const BlockMemories blocks = block_memories(context.model, context.plan);
  for (std::size_t stage = 0; stage < draft.roles.size(); ++stage) {
    RoleDraft& role = draft.roles[stage];
    std::vector<StageChunk> chunks;
    for (const ModelPart& part : context.parts[stage]) {
      chunks.push_back({blocks_of(context.model, part), part.first_layer});
    }
    for (std::size_t c = 0; c < chunks.size(); ++c) {
      for (const ChunkPass pass : passes_of(context.plan.schedule)) {
        role.chunks[c].memory[static_cast<std::size_t>(pass)] = chunk_work(
            blocks, context.plan, chunks[c], pass, static_cast<std::int64_t>(c), Bytes(0));
      }
    }
    const StateMemory state = state_memory(blocks, context.plan, chunks);
    role.messages = message_bytes(blocks, context.plan, chunks);
    role.reduction = state.reduction;
    role.update = state.update;
    draft.states.push_back(tensors_of(state));
  }
}

}  // namespace orrery
