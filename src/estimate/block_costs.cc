// SPDX-License-Identifier: Apache-2.0
#include "estimate/block_costs.h"

#include <algorithm>
#include <cassert>
#include <unordered_map>
#include <utility>

#include "estimate/node_timer.h"
#include "estimate/pass_map.h"
#include "estimate/template_tables.h"
#include "workload/plan/layout.h"

namespace orrery::estimate {
namespace {

/// Times the lists of blocks: of every step once.
class ListTimer {
 public:
  ListTimer(const Timing& timing, Time host_dispatch) : timer_(timing, host_dispatch, tables_) {}

  PassCost cost_of(const parallel::StepList& list) {
    const TimedTemplate nodes = timed(list);
    PassCost cost;
    cost.chain = compute_chain(nodes, *tables_.transfers());
    for (const TimedNode& node : nodes.nodes) {
      assert(node.lane < kBlockLanes);
      cost.lanes[node.lane] += node.least;
      if (node.transfer >= 0) {
        add_ports(cost.ports, tables_.transfer(node.transfer));
      }
      if (node.kind == TimedNode::Kind::kernels) {
        const auto above =
            std::upper_bound(kSlowdowns.begin() + 1, kSlowdowns.end(), node.beside_collective);
        cost.by_slowdown[index_of(above - kSlowdowns.begin() - 1)] += node.least;
      }
    }
    cost.kernels = cost.lanes.front();
    return cost;
  }

 private:
  TimedTemplate timed(const parallel::StepList& list) {
    TimedTemplate nodes;
    parallel::StepDependencies dependencies(list.lanes);
    std::vector<int> after;
    for (const parallel::PlacedStep& placed : list.steps) {
      auto known = known_.find(placed.step);
      if (known == known_.end()) {
        known = known_.emplace(placed.step, timer_.time(placed.step->node, 0)).first;
      }
      TimedNode& node = nodes.nodes.emplace_back(known->second);
      after.clear();
      dependencies.next(placed, after);
      node.first_before = static_cast<std::uint32_t>(nodes.before.size());
      node.befores = static_cast<std::uint32_t>(after.size());
      nodes.before.insert(nodes.before.end(), after.begin(), after.end());
    }
    return nodes;
  }

  TemplateTables tables_;
  NodeTimer timer_;
  std::unordered_map<const parallel::Step*, TimedNode> known_;  // never iterated over
};

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
  add_ports(ports, other.ports);
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
  for (Time& port : cost.ports) {
    port = port * times;
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
  key.batch_shares.clear();
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

BlockCosts BlockCosts::of(const zoo::Model& model, const plan::Plan& key,
                          const machine::Machine& machine, Prices& prices) {
  const auto blocks = parallel::list_blocks(model, key);
  Placement placement(plan::layout_of(key, model.experts > 0), machine);
  const collective::AlgorithmChoice algorithms = plan::algorithms_of(key);
  const Timing timing{
      .placement = placement, .algorithms = algorithms, .prices = prices, .alone = true};
  ListTimer timer(timing, blocks->draft.host_dispatch);
  BlockCosts costs;
  costs.kinds_ = plan::blocks_of(model, key, {.layers = model.layers});
  costs.runs_.resize(blocks->templates.size());
  const auto cost_at = [&](plan::BlockKind kind, std::size_t pass, std::size_t run) {
    PassCost cost = timer.cost_of(blocks->lists[index_of(blocks->templates[kind][pass][run])]);
    if (pass != index_of(parallel::BlockPass::forward) && !blocks->weights.empty()) {
      cost += timer.cost_of(blocks->lists[index_of(blocks->weights[kind][run])]);
    }
    return cost;
  };
  for (plan::BlockKind kind = 0; kind < costs.runs_.size(); ++kind) {
    for (std::size_t pass = 0; pass < parallel::kBlockPasses; ++pass) {
      const PassCost shorter = cost_at(kind, pass, 0);
      if (kind < plan::kFirstLayerBlock) {
        costs.ends_[kind * parallel::kBlockPasses + pass] = shorter;
        continue;
      }
      Run& run = costs.runs_[kind][pass];
      run.each = cost_at(kind, pass, parallel::kBlockRuns.size() - 1);
      run.each -= shorter;
      run.begin = std::min(Time(0), shorter.chain - run.each.chain * parallel::kBlockRuns.front());
    }
  }
  return costs;
}

PassCost BlockCosts::layers(parallel::BlockPass pass, std::int64_t first,
                            std::int64_t count) const {
  PassCost cost;
  const auto end = index_of(first + std::max<std::int64_t>(count, 0));
  for (std::size_t from = index_of(first), until = from; from < end; from = until) {
    while (until < end && kinds_[until] == kinds_[from]) {
      ++until;
    }
    const Run& run = runs_[kinds_[from]][index_of(pass)];
    cost += run.each * static_cast<std::int64_t>(until - from);
    cost.chain += run.begin;
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
