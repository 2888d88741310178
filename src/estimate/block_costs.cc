// SPDX-License-Identifier: Apache-2.0
#include "estimate/block_costs.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "estimate/pass_map.h"
#include "estimate/timed_workload.h"
#include "workload/plan/layout.h"

namespace orrery::estimate {
namespace {

PassCost cost_of(const TimedWorkload& timed, int number) {
  const TimedTemplate& nodes = timed.templates[index_of(number)]->nodes;
  PassCost cost;
  const PassMap slowed = map_of(nodes, *timed.transfers, Works::slowed);
  const PassMap least = map_of(nodes, *timed.transfers, Works::least);
  cost.chain = (slowed.stepwise ? least : slowed).entry(kCompute, kCompute);
  for (const TimedNode& node : nodes.nodes) {
    assert(node.lane < kBlockLanes);
    cost.lanes[node.lane] += node.least;
    if (node.kind == TimedNode::Kind::kernels) {
      const auto above =
          std::upper_bound(kSlowdowns.begin() + 1, kSlowdowns.end(), node.beside_collective);
      cost.by_slowdown[index_of(above - kSlowdowns.begin() - 1)] += node.least;
    }
  }
  cost.kernels = cost.lanes.front();
  return cost;
}

}  // namespace

PassCost& PassCost::operator+=(const PassCost& other) {
  chain += other.chain;
  kernels += other.kernels;
  for (std::size_t lane = 0; lane < kBlockLanes; ++lane) {
    lanes[lane] += other.lanes[lane];
  }
  for (std::size_t i = 0; i < kSlowdowns.size(); ++i) {
    by_slowdown[i] += other.by_slowdown[i];
  }
  return *this;
}
PassCost& PassCost::operator-=(const PassCost& other) {
  return *this += other * -1;
}
PassCost operator*(PassCost cost, std::int64_t times) {
  cost.chain = cost.chain * times;
  cost.kernels = cost.kernels * times;
  for (Time& lane : cost.lanes) {
    lane = lane * times;
  }
  for (Time& kernels : cost.by_slowdown) {
    kernels = kernels * times;
  }
  return cost;
}

plan::Plan block_key(const plan::Plan& plan) {
  const plan::Plan plain;
  plan::Plan key = plan;
  if (key.order.ends_with("dp-pp")) {  // the other axes lie alike, however many stages there are
    key.dp *= key.pp;
    key.pp = 1;
  }
  key.global_batch = key.dp * key.microbatch;
  const bool splits = plan.schedule == plan::Schedule::zb_h1 ||
                      plan.schedule == plan::Schedule::zb_v;  // dualpipe's pairs are whole
  key.schedule = splits ? plan::Schedule::zb_h1 : plain.schedule;
  key.chunks = plain.chunks;
  key.stage_layers = key.pp > 1 ? "auto" : "";
  key.zero = plain.zero;
  key.shard_params = key.shard_grads = key.shard_optimizer = 0;
  key.reshard_after_forward = plain.reshard_after_forward;
  key.recompute_layers = 0;
  key.offload_optimizer = key.offload_params = plan::Offload::none;
  key.pool_collectives = false;
  key.offload_activations = 0;
  key.pipeline_send = plain.pipeline_send;
  key.overlap_p2p = key.overlap_grad_reduce = key.overlap_param_gather = false;
  key.bucket = plain.bucket;
  key.quantized_params = false;
  key.dp_algorithm = plain.dp_algorithm;
  return key;
}

Result<BlockCosts> BlockCosts::of(const zoo::Model& model, const plan::Plan& key,
                                  const machine::Machine& machine, Prices& prices) {
  const auto blocks = parallel::lower_blocks(model, key);
  if (!blocks) {
    return fail(blocks.error());
  }
  Placement placement(plan::layout_of(key, model.experts > 0), machine);
  const collective::AlgorithmChoice algorithms = plan::algorithms_of(key);
  const TimedWorkload timed = time_workload(
      blocks->workload,
      {.placement = placement, .algorithms = algorithms, .prices = prices, .alone = true});
  BlockCosts costs;
  costs.kinds_ = plan::blocks_of(model, {.layers = model.layers});
  std::vector<std::array<Run, parallel::kBlockPasses>> runs(blocks->templates.size());
  for (plan::BlockKind kind = 0; kind < runs.size(); ++kind) {
    for (std::size_t pass = 0; pass < parallel::kBlockPasses; ++pass) {
      const auto& templates = blocks->templates[kind][pass];
      const auto number = [&](int of_program) { return timed.roles.front()[index_of(of_program)]; };
      const auto cost_at = [&](std::size_t run) {
        PassCost cost = cost_of(timed, number(templates[run]));
        if (pass != index_of(parallel::BlockPass::forward) && !blocks->weights.empty()) {
          cost += cost_of(timed, number(blocks->weights[kind][run]));
        }
        return cost;
      };
      const PassCost shorter = cost_at(0);
      if (kind < plan::kFirstLayerBlock) {
        costs.ends_[kind * parallel::kBlockPasses + pass] = shorter;
        continue;
      }
      Run& run = runs[kind][pass];
      run.each = cost_at(templates.size() - 1);
      run.each -= shorter;
      run.begin = std::min(Time(0), shorter.chain - run.each.chain * parallel::kBlockRuns.front());
    }
  }
  for (std::size_t pass = 0; pass < parallel::kBlockPasses; ++pass) {
    Sums& sums = costs.sums_[pass];
    PassCost sum;
    sums.until.push_back(sum);
    for (std::size_t layer = 0; layer < costs.kinds_.size(); ++layer) {
      const Run& run = runs[costs.kinds_[layer]][pass];
      sum += run.each;
      sum.chain +=
          layer == 0 || costs.kinds_[layer - 1] != costs.kinds_[layer] ? run.begin : Time(0);
      sums.until.push_back(sum);
      sums.begins.push_back(run.begin);
    }
  }
  return costs;
}

PassCost BlockCosts::layers(parallel::BlockPass pass, std::int64_t first,
                            std::int64_t count) const {
  if (count <= 0) {
    return {};
  }
  const Sums& sums = sums_[index_of(pass)];
  const auto from = index_of(first);
  PassCost cost = sums.until[from + index_of(count)];
  cost -= sums.until[from];
  if (from > 0 && kinds_[from - 1] == kinds_[from]) {
    cost.chain += sums.begins[from];  // a run is cut here
  }
  return cost;
}

PassCost BlockCosts::ends(parallel::BlockPass pass, const plan::ModelPart& part) const {
  PassCost cost;
  for (const auto& [stands, kind] :
       {std::pair{part.embedding, plan::kEmbeddingBlock}, std::pair{part.head, plan::kHeadBlock}}) {
    if (stands) {
      cost += ends_[kind * parallel::kBlockPasses + index_of(pass)];
    }
  }
  return cost;
}

PassCost BlockCosts::forward(const plan::ModelPart& part) const {
  PassCost cost = ends(parallel::BlockPass::forward, part);
  cost += layers(parallel::BlockPass::forward, part.first_layer, part.layers);
  return cost;
}

PassCost BlockCosts::backward(const plan::ModelPart& part, std::int64_t recomputed) const {
  const std::int64_t again = std::min(recomputed, part.layers);
  PassCost cost = ends(parallel::BlockPass::backward, part);
  cost += layers(parallel::BlockPass::backward, part.first_layer, again);
  cost += layers(parallel::BlockPass::plain, part.first_layer + again, part.layers - again);
  return cost;
}

}  // namespace orrery::estimate
