// SPDX-License-Identifier: Apache-2.0
#include "workload/memory/chunk_totals.h"

#include <algorithm>
#include <limits>

#include "workload/plan/schedule_row.h"

namespace orrery::footprint {

bool ChunkSums::begin(const BlockMemories& model, const plan::Plan& plan, std::size_t most_blocks) {
  plan_ = &plan;
  kinds_ = model.blocks.size();
  owned_.clear();
  blocks_.clear();
  for (plan::BlockKind kind = 0; kind < kinds_; ++kind) {
    owned_.push_back(owned_parameters(model, plan, kind));
    blocks_.push_back(block_of(model.blocks[kind], kind));
  }
  for (plan::BlockKind kind = 0; plan.recompute_layers > 0 && kind < kinds_; ++kind) {
    blocks_.push_back(block_of(model.plain[kind], kind));
  }
  const std::int64_t most =
      std::numeric_limits<std::int64_t>::max() / 32 / static_cast<std::int64_t>(most_blocks + 1);
  return std::ranges::all_of(blocks_, [&](const Block& block) {
    return std::max({block.stays, block.offloaded, block.forward, block.backward,
                     block.output_gradients, block.weights, block.held, block.whole,
                     block.gradients}) < most;
  });
}

ChunkSums::Block ChunkSums::block_of(const BlockMemory& memory, plan::BlockKind kind) const {
  const Bytes offloaded =
      kind < plan::kFirstLayerBlock ? Bytes(0) : memory.kept * plan_->offload_activations;
  const Bytes whole = gathered_bytes(*plan_, owned_[kind]);
  const Bytes gathered = plan_->reshard_after_forward ? whole : Bytes(0);
  const Bytes gradients = graph::bytes_of(plan_->grad_reduce_type, owned_[kind].trained());
  const Bytes running = offloaded + memory.logits_work + gathered;
  return {.stays = (memory.kept - offloaded + memory.logits).value(),
          .offloaded = offloaded.value(),
          .forward = (running + memory.forward_work).value(),
          .backward = (running + memory.backward_work + memory.recomputed).value(),
          .output_gradients = memory.held_gradients.value(),
          .weights = memory.weight_work.value(),
          .held = memory.held.value(),
          .ahead = gathered_ahead(*plan_, gathered).value(),
          .whole = whole.value(),
          .gradients = gradients.value()};
}

void ChunkSums::lay_out(const Blocks& chunk) {
  laid_out_.clear();
  std::int64_t layers = 0;
  std::int64_t all = 0;
  Bytes largest{0};
  for (const plan::BlockKind kind : chunk) {
    const bool layer = kind >= plan::kFirstLayerBlock;
    const bool left_out = layer && plan_->recompute_layers > 0 && layers >= plan_->recompute_layers;
    layers += layer ? 1 : 0;
    laid_out_.push_back(&blocks_[left_out ? kinds_ + kind : kind]);
    all += laid_out_.back()->gradients;
    largest = std::max(largest, reduced_at_once(*plan_, owned_[kind]));
  }
  most_unreduced_ = most_unreduced(*plan_, Bytes(all), largest).value();
}

template <class Visit>
void ChunkSums::forward(const Visit& visit) const {
  std::int64_t level = 0;
  std::int64_t offloaded_before = 0;
  for (std::size_t i = 0; i < laid_out_.size(); ++i) {
    const Block& block = *laid_out_[i];
    const Block& next = i + 1 < laid_out_.size() ? *laid_out_[i + 1] : block;
    level += block.stays;
    visit(level + block.forward + offloaded_before + next.ahead);
    offloaded_before = block.offloaded;
  }
}

template <class Visit>
void ChunkSums::backward(bool inputs, bool weights, const Visit& visit) const {
  std::int64_t level = 0;
  std::int64_t done = 0;
  for (std::size_t left = laid_out_.size(); left > 0; --left) {
    const Block& block = *laid_out_[left - 1];
    const Block& next = left > 1 ? *laid_out_[left - 2] : block;
    std::int64_t most = level;
    if (inputs) {
      most += block.backward + next.ahead + (left > 1 ? next.offloaded : 0);
      level -= block.stays;
    }
    if (weights) {
      done += block.gradients;
      most += block.weights + std::min(done, most_unreduced_);
    } else {
      most += block.output_gradients;
    }
    level += inputs == weights ? 0 : inputs ? block.held : -block.held;
    visit(most);
  }
}

ChunkTotals ChunkSums::totals(const Blocks& chunk) {
  lay_out(chunk);
  ChunkTotals totals;
  std::int64_t kept = 0;
  std::int64_t held = 0;
  std::int64_t host = 0;
  std::int64_t whole = 0;
  for (const Block* block : laid_out_) {
    kept += block->stays;
    held += block->held;
    host += block->offloaded;
    whole += block->whole;
  }
  totals.kept = Bytes(kept);
  totals.held = Bytes(held);
  totals.host = Bytes(host);
  totals.resident = Bytes(plan_->reshard_after_forward ? 0 : whole);
  const auto most_of = [](const auto& pass) {
    std::int64_t most = 0;  // that of a chunk without blocks; no first moment is below
    pass([&](std::int64_t moment) { most = std::max(most, moment); });
    return Bytes(most);
  };
  const auto set = [&](ChunkPass pass, Bytes most) {
    totals.most[static_cast<std::size_t>(pass)] = most;
  };
  set(ChunkPass::forward, most_of([&](const auto& visit) { forward(visit); }));
  const plan::ScheduleRow& schedule = row_of(plan_->schedule);
  if (schedule.whole_backwards) {
    set(ChunkPass::backward, most_of([&](const auto& visit) { backward(true, true, visit); }));
  }
  if (schedule.split_backwards) {
    set(ChunkPass::input_gradient,
        most_of([&](const auto& visit) { backward(true, false, visit); }));
    set(ChunkPass::weight_gradient,
        most_of([&](const auto& visit) { backward(false, true, visit); }));
  }
  return totals;
}

Bytes ChunkSums::most_concurrent(const Blocks& ahead, const Blocks& behind) {
  lay_out(behind);
  behind_.clear();
  backward(true, true, [&](std::int64_t moment) { behind_.push_back(moment); });
  std::int64_t left = 0;
  for (const Block* block : laid_out_) {
    left -= block->stays;
  }
  lay_out(ahead);
  ahead_.clear();
  forward([&](std::int64_t moment) { ahead_.push_back(moment); });
  if (ahead.empty()) {
    ahead_.push_back(0);
  }
  for (std::size_t k = behind_.size(); k-- > 1;) {
    behind_[k - 1] = std::max(behind_[k - 1], behind_[k]);  // the most from here on
  }
  std::int64_t most = 0;
  for (std::size_t k = 0; k < ahead_.size(); ++k) {
    most = std::max(most, ahead_[k] + std::max(left, k < behind_.size() ? behind_[k] : left));
  }
  return Bytes(most);
}

}  // namespace orrery::footprint
