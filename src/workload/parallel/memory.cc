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
  return plan.recompute == Recompute::full && kind == BlockKind::layer;
}

bool recomputes(const ModelOperator& op, const Plan& plan, BlockKind kind) {
  return full_recompute(plan, kind) ||
         (plan.recompute == Recompute::selective && op.recompute == RecomputeGroup::selective);
}

BlockMemory memory_of(const std::vector<ModelOperator>& operators, const Plan& plan, BlockKind kind,
                      Bytes boundary) {
  BlockMemory block;
  for (const ModelOperator& whole : operators) {
    const ModelOperator op = shard(whole, plan.tp, plan.sequence_parallel);
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

/// Blocks of one stage: which chunks hold the embedding and the head.
struct Stage {
  const BlockMemories& blocks;
  const Plan& plan;
  std::int64_t number;
  const std::vector<std::int64_t>& layers;

  bool first() const { return number == 0; }
  bool last() const { return number == plan.pp - 1; }
  std::int64_t layer_count() const {
    std::int64_t sum = 0;
    for (const std::int64_t count : layers) {
      sum += count;
    }
    return sum;
  }
};

std::int64_t parameters_of(const Stage& stage) {
  std::int64_t sum = stage.blocks.layer.parameters * stage.layer_count();
  sum += stage.first() ? stage.blocks.embedding.parameters : 0;
  sum += stage.last() ? stage.blocks.head.parameters : 0;
  sum += stage.last() && !stage.first() ? stage.blocks.tied_copy : 0;
  return sum;
}

void add_parameters(const Stage& stage, StageMemory& memory) {
  const Plan& plan = stage.plan;
  const std::int64_t parameters = parameters_of(stage);
  const auto shards = [&](int from) { return plan.zero >= from ? plan.dp : 1; };
  const Bytes compute = size_of(plan.compute_type);
  const Bytes state = Bytes(kMomentBytes + (compute < 4_B ? kMasterBytes : 0));
  memory[MemoryCategory::parameters] = compute * parameters / shards(3);
  memory[MemoryCategory::gradients] = size_of(plan.grad_type) * parameters / shards(2);
  memory[MemoryCategory::optimizer] = state * parameters / shards(1);
}

Bytes kept_by(const Stage& stage, std::size_t chunk) {
  Bytes sum = stage.blocks.layer.kept * stage.layers[chunk];
  sum += stage.first() && chunk == 0 ? stage.blocks.embedding.kept : Bytes(0);
  sum += stage.last() && chunk + 1 == stage.layers.size() ? stage.blocks.head.kept : Bytes(0);
  return sum;
}

void add_activations(const Stage& stage, StageMemory& memory) {
  const PipelineShape shape = pipeline_shape(stage.plan);
  std::vector<Bytes> kept;
  std::vector<double> weights;
  for (std::size_t chunk = 0; chunk < stage.layers.size(); ++chunk) {
    const bool head = stage.last() && chunk + 1 == stage.layers.size();
    kept.push_back(kept_by(stage, chunk));
    const Bytes weight = kept.back() + (head ? stage.blocks.head.logits : Bytes(0));
    weights.push_back(static_cast<double>(weight.value()));
  }
  const std::vector<std::int64_t> in_flight = peak_by_chunk(shape, stage.number, weights);
  Bytes& activations = memory[MemoryCategory::activations];
  for (std::size_t chunk = 0; chunk < kept.size(); ++chunk) {
    activations += kept[chunk] * in_flight[chunk];
  }
  activations += stage.layer_count() > 0 ? stage.blocks.layer.recomputed : Bytes(0);
  if (stage.last()) {
    memory[MemoryCategory::logits] = stage.blocks.head.logits * in_flight.back();
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
    buffers += stage.blocks.boundary / share * (plan.schedule == Schedule::interleaved ? 4 : ends);
  }
  if (plan.sequence_parallel || (plan.pp > 1 && scatters)) {
    buffers += stage.blocks.boundary;
  }
  const std::int64_t layer = std::max({stage.blocks.layer.parameters,
                                       stage.first() ? stage.blocks.embedding.parameters : 0,
                                       stage.last() ? stage.blocks.head.parameters : 0});
  if (plan.zero >= 2 && plan.dp > 1) {
    // Not overlapped and without buckets, all gradients of the backward are reduced in one buffer.
    const Bytes all = size_of(plan.grad_reduce_type) * parameters_of(stage);
    const bool one_buffer = !plan.overlap_grad_reduce && plan.bucket == Bytes(0);
    const Bytes largest = std::max(size_of(plan.grad_reduce_type) * layer, plan.bucket);
    buffers += one_buffer ? all : std::min(all, largest);
  }
  if (plan.zero == 3 && plan.dp > 1) {
    buffers += size_of(plan.compute_type) * layer * (plan.overlap_param_gather ? 2 : 1);
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
  const Bytes boundary = boundary_bytes(model, plan);
  const auto of = [&](BlockKind kind) {
    return memory_of(operators[index_of(kind)], plan, kind, boundary);
  };
  BlockMemories blocks{.embedding = of(BlockKind::embedding),
                       .layer = of(BlockKind::layer),
                       .head = of(BlockKind::head),
                       .boundary = boundary};
  if (model.tied_embedding) {
    for (const ModelOperator& op : operators[index_of(BlockKind::head)]) {
      blocks.tied_copy += weight_elements(op) / plan.tp;
    }
  }
  return blocks;
}

StageMemory stage_memory(const BlockMemories& blocks, const Plan& plan, std::int64_t stage,
                         const std::vector<std::int64_t>& layers) {
  const Stage described{blocks, plan, stage, layers};
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
  const auto layers = split_layers(model, plan);
  if (!layers) {
    return fail(layers.error());
  }
  const BlockMemories blocks = block_memories(model, plan);
  std::vector<StageMemory> stages;
  for (std::int64_t stage = 0; stage < plan.pp; ++stage) {
    stages.push_back(stage_memory(blocks, plan, stage, (*layers)[static_cast<std::size_t>(stage)]));
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
