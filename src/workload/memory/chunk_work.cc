// SPDX-License-Identifier: Apache-2.0
#include "workload/memory/chunk_work.h"

#include <algorithm>

namespace orrery {
namespace {

/// Follows the level of memory through the blocks of one piece of work.
class WorkMeter {
 public:
  /// Beside the level there is `beside`, while `block` runs.
  void moment(std::size_t block, const CategoryBytes& beside) {
    const CategoryBytes now = work_.change + beside;
    const Bytes total = now.total();
    if (!any_ || total > work_.most_total) {
      work_.most = now;
      work_.most_total = total;
      work_.block = block;
      any_ = true;
    }
    for (std::size_t c = 0; c < now.bytes.size(); ++c) {
      work_.highest.bytes[c] = std::max(work_.highest.bytes[c], now.bytes[c]);
    }
  }
  void add(MemoryCategory category, Bytes bytes) { work_.change[category] += bytes; }
  ChunkWork finish() const { return work_; }

 private:
  ChunkWork work_;
  bool any_ = false;
};

class ChunkMeter {
 public:
  ChunkMeter(const BlockMemories& model, const Plan& plan, const StageChunk& chunk)
      : model_(model), plan_(plan), chunk_(chunk) {
    std::int64_t layers = 0;
    for (const BlockKind kind : chunk.blocks) {
      const bool layer = kind >= kFirstLayerBlock;
      const bool left_out = layer && plan.recompute_layers > 0 && layers >= plan.recompute_layers;
      layers += layer ? 1 : 0;
      blocks_.push_back(left_out ? &model.plain[kind] : &model.blocks[kind]);
      const OwnedParameters owned = owned_parameters(model, plan, kind);
      gradients_.push_back(bytes_of(plan.grad_reduce_type, owned.trained()));
      all_gradients_ += gradients_.back();
      largest_gradients_ = std::max(largest_gradients_, gradients_.back());
    }
  }

  ChunkWork forward() const {
    WorkMeter meter;
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      const BlockMemory& block = *blocks_[i];
      CategoryBytes beside;
      beside[MemoryCategory::activations] = block.kept + (i > 0 ? offloaded(i - 1) : Bytes(0));
      beside[MemoryCategory::logits] = block.logits + block.logits_work;
      beside[MemoryCategory::buffers] =
          block.forward_work + gathered(i) + ahead(i + 1 < blocks_.size() ? i + 1 : i);
      meter.moment(i, beside);
      meter.add(MemoryCategory::activations, block.kept - offloaded(i));
      meter.add(MemoryCategory::logits, block.logits);
    }
    return meter.finish();
  }

  /// held: weight gradients come later, and what they need is held.
  ChunkWork backward(bool held) const {
    WorkMeter meter;
    Bytes done{0};
    for (std::size_t i = blocks_.size(); i-- > 0;) {
      const BlockMemory& block = *blocks_[i];
      done += gradients_[i];
      CategoryBytes beside;
      beside[MemoryCategory::activations] = offloaded(i) + (i > 0 ? offloaded(i - 1) : Bytes(0)) +
                                            (held ? block.held_gradients : Bytes(0));
      beside[MemoryCategory::logits] = block.logits_work;
      beside[MemoryCategory::buffers] = block.backward_work + block.recomputed + gathered(i) +
                                        ahead(i > 0 ? i - 1 : i) +
                                        (held ? Bytes(0) : block.weight_work + unreduced(done));
      meter.moment(i, beside);
      meter.add(MemoryCategory::activations,
                offloaded(i) - block.kept + (held ? block.held : Bytes(0)));
      meter.add(MemoryCategory::logits, Bytes(0) - block.logits);
    }
    return meter.finish();
  }

  ChunkWork weight_gradient() const {
    WorkMeter meter;
    Bytes done{0};
    for (std::size_t i = blocks_.size(); i-- > 0;) {
      done += gradients_[i];
      CategoryBytes beside;
      beside[MemoryCategory::buffers] = blocks_[i]->weight_work + unreduced(done);
      meter.moment(i, beside);
      meter.add(MemoryCategory::activations, Bytes(0) - blocks_[i]->held);
    }
    return meter.finish();
  }

  Bytes resident() const {
    Bytes sum{0};
    for (std::size_t i = 0; i < blocks_.size() && !plan_.reshard_after_forward; ++i) {
      sum += whole(i);
    }
    return sum;
  }
  Bytes offloaded() const {
    Bytes sum{0};
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      sum += offloaded(i);
    }
    return sum;
  }

 private:
  Bytes offloaded(std::size_t i) const {
    return chunk_.blocks[i] < kFirstLayerBlock ? Bytes(0)
                                               : blocks_[i]->kept * plan_.offload_activations;
  }
  /// Parameters that a gather brings.
  Bytes whole(std::size_t i) const {
    return gathered_bytes(plan_, owned_parameters(model_, plan_, chunk_.blocks[i]));
  }
  Bytes gathered(std::size_t i) const { return plan_.reshard_after_forward ? whole(i) : Bytes(0); }
  Bytes ahead(std::size_t i) const { return plan_.overlap_param_gather ? gathered(i) : Bytes(0); }

  Bytes unreduced(Bytes done) const {
    if (plan_.offload_params != Offload::none) {  // a block's leave beside the next one's backward
      return std::min(done, largest_gradients_ * (plan_.overlap_grad_reduce ? 2 : 1));
    }
    const bool travels = plan_.dp * plan_.cp > 1 && plan_.zero >= 2;
    return travels ? std::min(done, bucket_bytes(plan_, all_gradients_, largest_gradients_))
                   : Bytes(0);
  }

  const BlockMemories& model_;
  const Plan& plan_;
  const StageChunk& chunk_;
  std::vector<const BlockMemory*> blocks_;
  std::vector<Bytes> gradients_;  // of each block, on the wire
  Bytes all_gradients_{0};
  Bytes largest_gradients_{0};
};

}  // namespace

ChunkWorks chunk_works(const BlockMemories& model, const Plan& plan, const StageChunk& chunk) {
  const ChunkMeter meter(model, plan, chunk);
  return {.forward = meter.forward(),
          .backward = meter.backward(false),
          .input_gradient = meter.backward(true),
          .weight_gradient = meter.weight_gradient(),
          .resident = meter.resident(),
          .offloaded = meter.offloaded()};
}

Bytes message_bytes(const BlockMemories& model, const Plan& plan, const StageChunk& chunk) {
  if (plan.pp == 1) {
    return Bytes(0);
  }
  const bool scatters = plan.tp > 1 && plan.pipeline_send == PipelineSend::scatter_gather;
  const bool first = !chunk.blocks.empty() && chunk.blocks.front() == kEmbeddingBlock;
  const bool last = !chunk.blocks.empty() && chunk.blocks.back() == kHeadBlock;
  const int ends = (first ? 0 : 2) + (last ? 0 : 2);
  const Bytes one = model.boundary / (plan.sequence_parallel || scatters ? plan.tp : 1);
  const bool gathers = scatters && !plan.sequence_parallel;
  return one * ends + (gathers ? model.boundary : Bytes(0));
}

}  // namespace orrery
