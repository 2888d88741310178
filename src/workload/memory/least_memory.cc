// SPDX-License-Identifier: Apache-2.0
#include "workload/memory/least_memory.h"

#include <algorithm>

#include "workload/memory/state_memory.h"
#include "workload/plan/recompute.h"
#include "workload/plan/schedule.h"

namespace orrery::footprint {
namespace {

/// Calls visit(block, whether it is a layer) for every block of a chunk.
template <class Visit>
void for_blocks(const zoo::Model& model, const BlockMemories& blocks, const plan::Plan& plan,
                const plan::ModelPart& part, Visit&& visit) {
  if (part.embedding) {
    visit(plan::kEmbeddingBlock, blocks.blocks[plan::kEmbeddingBlock]);
  }
  for (std::int64_t i = 0; i < part.layers; ++i) {
    const plan::BlockKind kind = plan::layer_block(model, plan, part.first_layer + i);
    visit(kind, plan::recomputes_layer(plan, i) ? blocks.blocks[kind] : blocks.plain[kind]);
  }
  if (part.head) {
    visit(plan::kHeadBlock, blocks.blocks[plan::kHeadBlock]);
  }
}

Bytes of_stage(const zoo::Model& model, const BlockMemories& blocks, const plan::Plan& plan,
               const std::vector<plan::ModelPart>& stage, const std::vector<std::int64_t>& pieces) {
  const plan::PipelineShape shape = plan::pipeline_shape(plan);
  const bool splits = plan::splits_backward(plan.schedule);
  OwnedParameters owned;
  std::vector<Bytes> kept;
  Bytes work = Bytes::max();
  for (const plan::ModelPart& part : stage) {
    Bytes sum{0};
    Bytes last{0};
    for_blocks(model, blocks, plan, part, [&](plan::BlockKind kind, const BlockMemory& block) {
      last = block.backward_work + block.recomputed;
      owned += owned_parameters(blocks, plan, kind);
      const bool layer = kind >= plan::kFirstLayerBlock;
      const Bytes stays = layer ? block.kept - block.kept * plan.offload_activations : block.kept;
      sum += splits ? std::min(stays, block.held) : stays + block.logits;
    });
    kept.push_back(sum);
    work = std::min(work, last);
  }
  Bytes bytes = state_memory(plan, owned, Bytes(0)).device.total();
  for (std::size_t c = 0; c < kept.size(); ++c) {
    bytes += kept[c] * pieces[c];
  }
  bytes += work;
  if (plan.overlap_ep != plan::OverlapExperts::off && (splits || shape.pairs)) {
    bytes -= *std::max_element(kept.begin(), kept.end());  // one grows while another goes
  }
  return bytes;
}

}  // namespace

EndPieces pieces_at_ends(const plan::PipelineShape& shape) {
  const std::vector<double> equal(static_cast<std::size_t>(shape.chunks), 1);
  return {plan::peak_by_chunk(shape, 0, equal),
          plan::peak_by_chunk(shape, shape.stages - 1, equal)};
}

Bytes least_memory(const zoo::Model& model, const BlockMemories& blocks, const plan::Plan& plan,
                   const std::vector<std::vector<plan::ModelPart>>& parts,
                   const machine::Machine& machine, const EndPieces& pieces) {
  const Bytes first = of_stage(model, blocks, plan, parts.front(), pieces.first);
  const Bytes last =
      parts.size() == 1 ? first : of_stage(model, blocks, plan, parts.back(), pieces.last);
  return std::max(first, last) + framework_bytes(model, plan, machine);
}

Bytes kept_by_layers(const zoo::Model& model, const BlockMemories& blocks, const plan::Plan& plan,
                     const plan::ModelPart& part) {
  Bytes sum{0};
  for_blocks(model, blocks, plan, part, [&](plan::BlockKind kind, const BlockMemory& block) {
    sum += kind >= plan::kFirstLayerBlock ? block.kept : Bytes(0);
  });
  return sum;
}

}  // namespace orrery::footprint
