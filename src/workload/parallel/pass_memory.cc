// SPDX-License-Identifier: Apache-2.0
/// The allocations of a stage, which are those of its footprint (workload/memory).
#include "workload/memory/chunk_work.h"
#include "workload/memory/state_memory.h"
#include "workload/parallel/passes.h"

namespace orrery::parallel {
namespace {

void append(std::string_view name, plan::MemoryCategory category, Bytes bytes, int tier,
            std::vector<graph::Tensor>& state) {
  if (bytes > Bytes(0)) {
    state.push_back({.name = std::string(name),
                     .bytes = bytes,
                     .layout = {},
                     .memory = category,
                     .lifetime = graph::Tensor::Lifetime::run,
                     .tier = tier});
  }
}

std::vector<graph::Tensor> tensors_of(const footprint::StateMemory& memory) {
  constexpr std::array<int, graph::kLowerTierCount> kTiers = {1, 2, graph::kRemoteTier};
  std::vector<graph::Tensor> state;
  for (const auto& category : kNames<plan::MemoryCategory>) {
    append(category.name, category.value, memory.device[category.value], 0, state);
  }
  for (std::size_t lower = 0; lower < kTiers.size(); ++lower) {
    append("offloaded", plan::MemoryCategory::optimizer, memory.lower[lower], kTiers[lower], state);
  }
  return state;
}

}  // namespace

void passes::memory(Draft& draft, const Context& context) {
  const footprint::BlockMemories blocks = footprint::block_memories(context.model, context.plan);
  for (std::size_t stage = 0; stage < draft.roles.size(); ++stage) {
    RoleDraft& role = draft.roles[stage];
    const auto chunks = footprint::stage_chunks(context.model, context.plan, context.parts[stage]);
    for (std::size_t c = 0; c < chunks.size(); ++c) {
      for (const footprint::ChunkPass pass : footprint::chunk_passes(context.plan.schedule)) {
        role.chunks[c].memory[static_cast<std::size_t>(pass)] = footprint::chunk_work(
            blocks, context.plan, chunks[c], pass, static_cast<std::int64_t>(c), Bytes(0));
      }
    }
    footprint::StateMemory state = footprint::state_memory(blocks, context.plan, chunks);
    if (context.machine != nullptr) {
      state.device[plan::MemoryCategory::framework] =
          footprint::framework_bytes(context.model, context.plan, *context.machine);
    }
    role.messages = footprint::message_bytes(blocks, context.plan, chunks);
    role.reduction = state.reduction;
    role.update = state.update;
    draft.states.push_back(tensors_of(state));
  }
}

}  // namespace orrery::parallel
