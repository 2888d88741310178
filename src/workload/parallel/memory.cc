// SPDX-License-Identifier: Apache-2.0
#include "workload/parallel/memory.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/format.h"
#include "workload/parallel/lower.h"
#include "workload/parallel/shard.h"

namespace orrery {
namespace {

constexpr int kMomentBytes = 8;  // Adam's two, fp32
constexpr int kMasterBytes = 4;  // fp32 copy of parameters of a smaller type

bool full_recompute(const Plan& plan, BlockKind kind) {
  return plan.recompute == Recompute::full && kind >= kFirstLayerBlock;
}

bool recomputes(const ModelOperator& op, const Plan& plan, BlockKind kind) {
  return full_recompute(plan, kind) ||
         (plan.recompute == Recompute::selective && op.recompute == RecomputeGroup::selective);
}

BlockMemory memory_of(const std::vector<ModelOperator>& operators, const Plan& plan, BlockKind kind,
                      Bytes boundary) {
  BlockMemory block;
  for (const ModelOperator& whole : operators) {
    const ModelOperator op = shard(whole, plan);
    block.parameters += op.parameters;
    (op.kind == OperatorKind::loss ? block.logits
     : recomputes(op, plan, kind)  ? block.recomputed
                                   : block.kept) += op.saved;
  }
  if (full_recompute(plan, kind)) {
    block.kept += boundary / (plan.sequence_parallel ? plan.tp : 1);
  }
  return block;
}

/// Blocks of one stage, chunk by chunk.
struct Stage {
  const BlockMemories& model;
  const Plan& plan;
  std::int64_t number;
  const std::vector<std::vector<BlockKind>>& chunks;

  bool first() const { return number == 0; }
  bool last() const { return number == plan.pp - 1; }

  template <class Visit>
  void each_block(Visit&& visit) const {
    for (const std::vector<BlockKind>& chunk : chunks) {
      for (const BlockKind kind : chunk) {
        visit(model.blocks[kind], kind);
      }
    }
  }
  /// Parameters of a block, with the head's copy of a tied embedding that stands on another stage.
  std::int64_t parameters(const BlockMemory& block, BlockKind kind) const {
    return block.parameters + (kind == kHeadBlock && plan.pp > 1 ? model.tied_copy : 0);
  }
  std::int64_t parameters() const {
    std::int64_t sum = 0;
    each_block([&](const BlockMemory& block, BlockKind kind) { sum += parameters(block, kind); });
    return sum;
  }
};

void add_parameters(const Stage& stage, StageMemory& memory) {
  const Plan& plan = stage.plan;
  const std::int64_t parameters = stage.parameters();
  const auto shards = [&](int from) { return plan.zero >= from ? plan.dp : 1; };
  const Bytes compute = size_of(plan.compute_type);
  const Bytes state = Bytes(kMomentBytes + (compute < 4_B ? kMasterBytes : 0));
  memory[MemoryCategory::parameters] = compute * parameters / shards(3);
  memory[MemoryCategory::gradients] = size_of(plan.grad_type) * parameters / shards(2);
  memory[MemoryCategory::optimizer] = state * parameters / shards(1);
}

void add_activations(const Stage& stage, StageMemory& memory) {
  const PipelineShape shape = pipeline_shape(stage.plan);
  std::vector<Bytes> kept;
  std::vector<Bytes> logits;
  std::vector<double> weights;
  for (const std::vector<BlockKind>& chunk : stage.chunks) {
    kept.emplace_back(0);
    logits.emplace_back(0);
    for (const BlockKind kind : chunk) {
      kept.back() += stage.model.blocks[kind].kept;
      logits.back() += stage.model.blocks[kind].logits;
    }
    weights.push_back(static_cast<double>((kept.back() + logits.back()).value()));
  }
  const std::vector<std::int64_t> in_flight = peak_by_chunk(shape, stage.number, weights);
  Bytes recomputed{0};
  stage.each_block([&](const BlockMemory& block, BlockKind) {
    recomputed = std::max(recomputed, block.recomputed);
  });
  memory[MemoryCategory::activations] = recomputed;
  for (std::size_t chunk = 0; chunk < kept.size(); ++chunk) {
    memory[MemoryCategory::activations] += kept[chunk] * in_flight[chunk];
    memory[MemoryCategory::logits] += logits[chunk] * in_flight[chunk];
  }
  memory.microbatches_in_flight =
      static_cast<double>(peak_in_flight(shape, stage.number)) / static_cast<double>(shape.chunks);
}

/// Messages: one received and one sent in each direction. Tensor parallelism with sequence
/// parallelism, or scatter_gather, gathers into one boundary tensor. ZeRO 2 and 3 hold one bucket
/// of unreduced gradients, ZeRO 3 one gathered layer and with overlap the next.
void add_buffers(const Stage& stage, StageMemory& memory) {
  const Plan& plan = stage.plan;
  const bool scatters = plan.tp > 1 && plan.pipeline_send == PipelineSend::scatter_gather;
  Bytes& buffers = memory[MemoryCategory::buffers];
  if (plan.pp > 1) {
    const std::int64_t share = plan.sequence_parallel || scatters ? plan.tp : 1;
    const int ends = (stage.first() ? 0 : 2) + (stage.last() ? 0 : 2);
    buffers += stage.model.boundary / share * (plan.schedule == Schedule::interleaved ? 4 : ends);
  }
  if (plan.sequence_parallel || (plan.pp > 1 && scatters)) {
    buffers += stage.model.boundary;
  }
  std::int64_t block = 0;
  stage.each_block(
      [&](const BlockMemory& one, BlockKind) { block = std::max(block, one.parameters); });
  if (plan.zero >= 2 && plan.dp > 1) {
    // Not overlapped and without buckets, all gradients of the backward are reduced in one buffer.
    const Bytes all = size_of(plan.grad_reduce_type) * stage.parameters();
    const bool one_buffer = !plan.overlap_grad_reduce && plan.bucket == Bytes(0);
    const Bytes largest = std::max(size_of(plan.grad_reduce_type) * block, plan.bucket);
    buffers += one_buffer ? all : std::min(all, largest);
  }
  if (plan.zero == 3 && plan.dp > 1) {
    buffers += size_of(plan.compute_type) * block * (plan.overlap_param_gather ? 2 : 1);
  }
}

}  // namespace

Bytes StageMemory::total() const {
  Bytes sum{0};
  for (const Bytes part : bytes) {
    sum += part;
  }
  return sum;
}

BlockMemories block_memories(const Model& model, const Plan& plan) {
  const auto operators = block_operators(model, plan);
  BlockMemories result{.blocks = {}, .boundary = boundary_bytes(model, plan)};
  for (BlockKind kind = 0; kind < operators.size(); ++kind) {
    result.blocks.push_back(memory_of(operators[kind], plan, kind, result.boundary));
  }
  if (model.tied_embedding) {
    for (const ModelOperator& op : operators[kHeadBlock]) {
      result.tied_copy += weight_elements(op) / plan.tp;
    }
  }
  return result;
}

StageMemory stage_memory(const BlockMemories& blocks, const Plan& plan, std::int64_t stage,
                         const std::vector<std::vector<BlockKind>>& chunks) {
  const Stage described{blocks, plan, stage, chunks};
  StageMemory memory;
  add_parameters(described, memory);
  add_activations(described, memory);
  add_buffers(described, memory);
  return memory;
}

Result<std::vector<StageMemory>> memory_footprint(const Model& model, const Plan& plan) {
  if (auto checked = check(plan, model); !checked) {
    return fail(std::move(checked.error()));
  }
  const auto parts = split_model(model, plan);
  if (!parts) {
    return fail(parts.error());
  }
  const BlockMemories blocks = block_memories(model, plan);
  std::vector<StageMemory> stages;
  for (std::int64_t stage = 0; stage < plan.pp; ++stage) {
    std::vector<std::vector<BlockKind>> chunks;
    for (const ModelPart& part : (*parts)[static_cast<std::size_t>(stage)]) {
      chunks.push_back(blocks_of(model, part));
    }
    stages.push_back(stage_memory(blocks, plan, stage, chunks));
  }
  return stages;
}

Result<void> check_fits(const std::vector<StageMemory>& stages, const Machine& machine) {
  if (machine.device.memory.empty()) {
    return fail("device '" + machine.device.name + "' states no memory");
  }
  const MemoryTier& tier = machine.device.memory.front();
  Error error;
  for (std::size_t s = 0; s < stages.size(); ++s) {
    if (stages[s].total() <= tier.capacity) {
      continue;
    }
    std::string parts;
    for (const auto& category : kNames<MemoryCategory>) {
      parts += fmt::format("{}{} {}", parts.empty() ? "" : ", ", category.name,
                           to_string(stages[s][category.value]));
    }
    error.add({{},
               fmt::format("stage {}", s),
               to_string(stages[s].total()),
               fmt::format("at most {} of {} ({})", to_string(tier.capacity), tier.name, parts)});
  }
  if (!error.empty()) {
    return fail(std::move(error));
  }
  return {};
}

}  // namespace orrery
