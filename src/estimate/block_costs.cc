// SPDX-License-Identifier: Apache-2.0
#include "estimate/block_costs.h"

#include <algorithm>
#include <utility>

#include "workload/plan/layout.h"

namespace orrery::estimate {

BlockCosts BlockCosts::of(const zoo::Model& model, const plan::Plan& key, Placement& placement,
                          Prices& prices, Sharing sharing) {
  const auto blocks = parallel::list_blocks(model, key);
  const collective::AlgorithmChoice algorithms = plan::algorithms_of(key);
  BlockTimer timer(placement, algorithms, prices, blocks->draft.host_dispatch, sharing);
  BlockCosts costs;
  costs.kinds_ = plan::blocks_of(model, key, {.layers = model.layers});
  costs.runs_.resize(blocks->templates.size());
  const auto cost_at = [&](plan::BlockKind kind, std::size_t pass, std::size_t run) {
    PassCost weights;
    if (pass != index_of(parallel::BlockPass::forward) && !blocks->weights.empty()) {
      weights = timer.cost_of(blocks->lists[index_of(blocks->weights[kind][run])]);
    }
    return pass == kWeights
               ? weights
               : weights +=
                 timer.cost_of(blocks->lists[index_of(blocks->templates[kind][pass][run])]);
  };
  for (plan::BlockKind kind = 0; kind < costs.runs_.size(); ++kind) {
    for (std::size_t pass = 0; pass < kPasses; ++pass) {
      const PassCost shorter = cost_at(kind, pass, 0);
      if (kind < plan::kFirstLayerBlock) {
        costs.ends_[kind][pass] = shorter;
        continue;
      }
      Run& run = costs.runs_[kind][pass];
      run.each = cost_at(kind, pass, parallel::kBlockRuns.size() - 1);
      run.each -= shorter;
      run.begin = std::min(Time(0), shorter.chain - run.each.chain * parallel::kBlockRuns.front());
    }
  }
  costs.pairs_.resize(blocks->pairs.size());
  for (std::size_t kind = plan::kFirstLayerBlock; kind < costs.pairs_.size(); ++kind) {
    for (std::size_t plain = 0; plain < costs.pairs_[kind].size(); ++plain) {
      const auto& lists = blocks->pairs[kind][plain];
      const PassCost shorter = timer.cost_of(blocks->lists[index_of(lists.front())]);
      PassCost each = timer.cost_of(blocks->lists[index_of(lists.back())]);
      each -= shorter;
      costs.pairs_[kind][plain] = {
          .each = each.chain - each.kernels,
          .begin = std::min(Time(0), shorter.chain - each.chain * parallel::kBlockRuns.front())};
    }
  }
  return costs;
}

PassCost BlockCosts::layers(std::size_t pass, std::int64_t first, std::int64_t count) const {
  PassCost cost;
  const auto end = index_of(first + std::max<std::int64_t>(count, 0));
  for (std::size_t from = index_of(first), until = from; from < end; from = until) {
    while (until < end && kinds_[until] == kinds_[from]) {
      ++until;
    }
    const Run& run = runs_[kinds_[from]][pass];
    cost += run.each * static_cast<std::int64_t>(until - from);
    cost.chain += run.begin;
  }
  return cost;
}

PassCost BlockCosts::ends(std::size_t pass, const plan::ModelPart& part) const {
  PassCost cost;
  for (const auto& [stands, kind] :
       {std::pair{part.embedding, plan::kEmbeddingBlock}, std::pair{part.head, plan::kHeadBlock}}) {
    if (stands) {
      cost += ends_[kind][pass];
    }
  }
  return cost;
}

PassCost BlockCosts::chunk(std::size_t pass, const plan::ModelPart& part) const {
  PassCost cost = ends(pass, part);
  cost += layers(pass, part.first_layer, part.layers);
  return cost;
}

PassCost BlockCosts::forward(const plan::ModelPart& part) const {
  return chunk(index_of(parallel::BlockPass::forward), part);
}

PassCost BlockCosts::all_passes(std::int64_t layers, std::int64_t chunks) const {
  const plan::ModelPart whole{.embedding = true, .head = true, .layers = layers};
  PassCost cost = forward(whole);
  cost += backward(whole, 0);
  Time begin{0};  // of each run of a chunk, at the least
  for (const std::array<Run, kPasses>& kind : runs_) {
    begin = std::min(begin, kind[index_of(parallel::BlockPass::forward)].begin +
                                kind[index_of(parallel::BlockPass::plain)].begin);
  }
  cost.chain += begin * std::max<std::int64_t>(0, chunks - 1);
  return cost;
}

Time BlockCosts::pair_waits(const plan::ModelPart& forward, const plan::ModelPart& backward,
                            std::int64_t recomputed) const {
  const bool ends = forward.embedding || forward.head || backward.embedding || backward.head;
  const std::int64_t beside = std::min(forward.layers, backward.layers) - (ends ? 1 : 0);
  Time waits{0};
  const PairRun* before = nullptr;
  for (std::int64_t i = 0; i < beside && !pairs_.empty(); ++i) {
    const std::int64_t back = backward.layers - 1 - i;
    const plan::BlockKind kind = kinds_[index_of(forward.first_layer + i)];
    const bool alike = kind == kinds_[index_of(backward.first_layer + back)];
    const PairRun* run = alike ? &pairs_[kind][back < recomputed ? 0 : 1] : nullptr;
    if (run != nullptr) {
      waits += run->each + (run != before ? run->begin : Time(0));
    }
    before = run;
  }
  return std::max(Time(0), waits);
}

PassCost BlockCosts::weights(const plan::ModelPart& part) const {
  return chunk(kWeights, part);
}

PassCost BlockCosts::backward(const plan::ModelPart& part, std::int64_t recomputed) const {
  const std::int64_t again = std::min(recomputed, part.layers);
  PassCost cost = ends(index_of(parallel::BlockPass::backward), part);
  cost += layers(index_of(parallel::BlockPass::backward), part.first_layer, again);
  cost +=
      layers(index_of(parallel::BlockPass::plain), part.first_layer + again, part.layers - again);
  return cost;
}

}  // namespace orrery::estimate
