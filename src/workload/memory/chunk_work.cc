// SPDX-License-Identifier: Apache-2.0
#include "workload/memory/chunk_work.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "workload/plan/schedule_row.h"

namespace orrery::footprint {
namespace {

constexpr int kHostTier = 1;

class ChunkMeter {
 public:
  ChunkMeter(const BlockMemories& model, const plan::Plan& plan, const StageChunk& chunk)
      : model_(model), plan_(plan), chunk_(chunk) {
    std::int64_t layers = 0;
    for (const plan::BlockKind kind : chunk.blocks) {
      const bool layer = kind >= plan::kFirstLayerBlock;
      const bool left_out = layer && plan.recompute_layers > 0 && layers >= plan.recompute_layers;
      layers += layer ? 1 : 0;
      blocks_.push_back(left_out ? &model.plain[kind] : &model.blocks[kind]);
      const OwnedParameters owned = owned_parameters(model, plan, kind);
      gradients_.push_back(graph::bytes_of(plan.grad_reduce_type, owned.trained()));
      all_gradients_ += gradients_.back();
      largest_gradients_ = std::max(largest_gradients_, reduced_at_once(plan, owned));
    }
  }

  ChunkWork forward(std::int64_t number) {
    shared(number, Lifetime::leaves);
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      const BlockMemory& block = *blocks_[i];
      leaves("kept", plan::MemoryCategory::activations, block.kept - offloaded(i), i);
      held("on_the_way_to_host", plan::MemoryCategory::activations, offloaded(i), i,
           std::min(i + 1, blocks_.size() - 1));
      leaves("logits", plan::MemoryCategory::logits, block.logits, i);
      held("logits_work", plan::MemoryCategory::logits, block.logits_work, i, i);
      held("work", plan::MemoryCategory::buffers, block.forward_work, i, i);
      gathers(i, i, i + 1 < blocks_.size() ? i + 1 : i);
    }
    return finish();
  }

  /// Returns the work of a backward. Without weight gradients, what these need is left for another
  /// piece of work.
  ChunkWork backward(std::int64_t number, bool with_weights) {
    shared(number, Lifetime::enters);
    Bytes done{0};
    for (std::size_t at = 0; at < blocks_.size(); ++at) {
      const std::size_t i = blocks_.size() - 1 - at;
      const BlockMemory& block = *blocks_[i];
      done += gradients_[i];
      enters("kept", plan::MemoryCategory::activations, block.kept - offloaded(i), at);
      held("from_host", plan::MemoryCategory::activations, offloaded(i), at > 0 ? at - 1 : at, at);
      enters("logits", plan::MemoryCategory::logits, block.logits, at);
      held("logits_work", plan::MemoryCategory::logits, block.logits_work, at, at);
      held("work", plan::MemoryCategory::buffers, block.backward_work, at, at);
      held("recomputed", plan::MemoryCategory::buffers, block.recomputed, at, at);
      gathers(i, at, i > 0 ? i - 1 : i);
      if (with_weights) {
        weights(block, done, at);
      } else {
        held("output_gradients", plan::MemoryCategory::activations, block.held_gradients, at, at);
        leaves("for_weights", plan::MemoryCategory::activations, block.held, at + 1);
      }
    }
    return finish();
  }

  ChunkWork weight_gradient() {
    Bytes done{0};
    for (std::size_t at = 0; at < blocks_.size(); ++at) {
      const std::size_t i = blocks_.size() - 1 - at;
      done += gradients_[i];
      weights(*blocks_[i], done, at);
      enters("for_weights", plan::MemoryCategory::activations, blocks_[i]->held, at);
    }
    return finish();
  }

  void messages(Bytes bytes) {
    if (!blocks_.empty()) {
      held("messages", plan::MemoryCategory::buffers, bytes, 0, blocks_.size() - 1);
    }
  }

 private:
  using Lifetime = graph::Tensor::Lifetime;

  ChunkWork finish() { return {std::move(allocations_), blocks_.size()}; }

  void add(const graph::Allocation& allocation) {
    if (allocation.bytes > Bytes(0)) {
      allocations_.push_back(allocation);
    }
  }
  void held(std::string_view name, plan::MemoryCategory category, Bytes bytes, std::size_t first,
            std::size_t last) {
    add({.name = name, .memory = category, .bytes = bytes, .first = first, .last = last});
  }
  void leaves(std::string_view name, plan::MemoryCategory category, Bytes bytes,
              std::size_t first) {
    add({.name = name,
         .memory = category,
         .bytes = bytes,
         .first = first,
         .lifetime = Lifetime::leaves});
  }
  void enters(std::string_view name, plan::MemoryCategory category, Bytes bytes, std::size_t last) {
    add({.name = name,
         .memory = category,
         .bytes = bytes,
         .last = last,
         .lifetime = Lifetime::enters});
  }

  void weights(const BlockMemory& block, Bytes done, std::size_t at) {
    held("weight_gradient", plan::MemoryCategory::buffers, block.weight_work, at, at);
    held("unreduced", plan::MemoryCategory::buffers, unreduced(done), at, at);
  }
  /// Parameters of block `i`, and of the one whose gather runs ahead.
  void gathers(std::size_t i, std::size_t at, std::size_t next) {
    held("parameters", plan::MemoryCategory::buffers, gathered(i), at, at);
    held("next_parameters", plan::MemoryCategory::buffers, ahead(next), at, at);
  }

  /// Adds what is held while microbatches are in flight: gathered parameters and, for each,
  /// activations on the host.
  void shared(std::int64_t number, Lifetime lifetime) {
    Bytes host{0};
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      host += offloaded(i);
    }
    const std::size_t last = blocks_.empty() ? 0 : blocks_.size() - 1;
    add({.name = "on_host",
         .memory = plan::MemoryCategory::activations,
         .bytes = host,
         .last = last,
         .lifetime = lifetime,
         .tier = kHostTier});
    add({.name = "resident_parameters",
         .memory = plan::MemoryCategory::buffers,
         .bytes = resident(),
         .last = last,
         .lifetime = lifetime,
         .shared = static_cast<std::uint32_t>(number + 1)});
  }

  Bytes resident() const {
    Bytes sum{0};
    for (std::size_t i = 0; i < blocks_.size() && !plan_.reshard_after_forward; ++i) {
      sum += whole(i);
    }
    return sum;
  }
  Bytes offloaded(std::size_t i) const {
    return chunk_.blocks[i] < plan::kFirstLayerBlock ? Bytes(0)
                                                     : blocks_[i]->kept * plan_.offload_activations;
  }
  /// Parameters that a gather brings.
  Bytes whole(std::size_t i) const {
    return gathered_bytes(plan_, owned_parameters(model_, plan_, chunk_.blocks[i]));
  }
  Bytes gathered(std::size_t i) const { return plan_.reshard_after_forward ? whole(i) : Bytes(0); }
  Bytes ahead(std::size_t i) const { return gathered_ahead(plan_, gathered(i)); }

  Bytes unreduced(Bytes done) const {
    return std::min(done, most_unreduced(plan_, all_gradients_, largest_gradients_));
  }

  const BlockMemories& model_;
  const plan::Plan& plan_;
  const StageChunk& chunk_;
  std::vector<const BlockMemory*> blocks_;
  std::vector<Bytes> gradients_;  // of each block, on the wire
  Bytes all_gradients_{0};
  Bytes largest_gradients_{0};
  std::vector<graph::Allocation> allocations_;
};

Bytes of_chunk(const BlockMemories& model, const plan::Plan& plan, const StageChunk& chunk) {
  const bool scatters = plan.tp > 1 && plan.pipeline_send == plan::PipelineSend::scatter_gather;
  const bool first = !chunk.blocks.empty() && chunk.blocks.front() == plan::kEmbeddingBlock;
  const bool last = !chunk.blocks.empty() && chunk.blocks.back() == plan::kHeadBlock;
  const int ends = (first ? 0 : 2) + (last ? 0 : 2);
  const Bytes one = model.boundary / (plan.sequence_parallel || scatters ? plan.tp : 1);
  const bool gathers = scatters && !plan.sequence_parallel;
  return one * ends + (gathers ? model.boundary : Bytes(0));
}

}  // namespace

Bytes most_unreduced(const plan::Plan& plan, Bytes all, Bytes largest) {
  if (plan.offload_params !=
      plan::Offload::none) {  // a block's leave beside the next one's backward
    return largest * (plan.overlap_grad_reduce ? 2 : 1);
  }
  if (plan::gradients_come_and_go(plan)) {
    return all;
  }
  const bool travels = plan.dp * plan.cp > 1 && plan.zero >= 2;
  return travels ? bucket_bytes(plan, all, largest) : Bytes(0);
}

std::vector<ChunkPass> chunk_passes(plan::Schedule schedule) {
  std::vector<ChunkPass> passes{ChunkPass::forward};
  if (row_of(schedule).whole_backwards) {
    passes.push_back(ChunkPass::backward);
  }
  if (plan::splits_backward(schedule)) {
    passes.push_back(ChunkPass::input_gradient);
    passes.push_back(ChunkPass::weight_gradient);
  }
  return passes;
}

ChunkWork chunk_work(const BlockMemories& model, const plan::Plan& plan, const StageChunk& chunk,
                     ChunkPass pass, std::int64_t number, Bytes messages) {
  ChunkMeter meter(model, plan, chunk);
  meter.messages(messages);
  switch (pass) {
    case ChunkPass::forward:
      return meter.forward(number);
    case ChunkPass::backward:
      return meter.backward(number, true);
    case ChunkPass::input_gradient:
      return meter.backward(number, false);
    case ChunkPass::weight_gradient:
      return meter.weight_gradient();
  }
  return {};
}

Bytes message_bytes(const BlockMemories& model, const plan::Plan& plan,
                    const std::vector<StageChunk>& chunks) {
  Bytes most{0};
  for (const StageChunk& chunk : chunks) {
    most = std::max(most, plan.pp == 1 ? Bytes(0) : of_chunk(model, plan, chunk));
  }
  return most;
}

}  // namespace orrery::footprint
