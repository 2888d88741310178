// SPDX-License-Identifier: Apache-2.0
#include "estimate/cost_tables.h"

#include <algorithm>
#include <utility>

#include "estimate/shared_links.h"
#include "workload/plan/layout.h"
#include "workload/plan/rounds.h"
#include "workload/plan/schedule_row.h"

namespace orrery::estimate {
namespace {

/// Layers of a chunk that recompute (StageLoads::recomputed).
std::int64_t recomputed(const plan::Plan& plan) {
  const bool recomputes =
      plan.recompute != plan::Recompute::none || !plan.recompute_modules.empty();
  return recomputes ? plan.recompute_layers : -1;
}

}  // namespace

bool hides_exchanges(const plan::Plan& plan) {
  return plan.fuse_communication || plan.overlap_ep == plan::OverlapExperts::microbatch ||
         (row_of(plan.schedule).both_ends && plan.overlap_ep != plan::OverlapExperts::off);
}

CostTables::CostTables(const zoo::Model& model, const machine::Machine& machine)
    : model_(model),
      sites_(model, machine),
      crossing_(std::any_of(machine.network.begin(), machine.network.end(), is_shared)) {}

Result<PlanCosts> CostTables::of(const plan::Plan& plan, Sharing sharing,
                                 const std::vector<std::size_t>& devices) {
  const auto site = sites_.of(plan);
  if (!site) {
    return fail(site.error());
  }
  const StageParts* parts = parts_of(plan);
  if (parts == nullptr) {
    return fail("a plan that check() accepts");
  }
  const std::vector<StagePasses>& loads =
      devices.empty() ? loads_of(plan, blocks_of(plan, *site, sharing), *parts, *site)
                      : mixed_loads(plan, *parts, *site, devices);
  return PlanCosts{*site->machine, *parts,       loads, states_of(plan, *parts, *site, sharing),
                   !crossing_,     lone_of(plan)};
}

const std::vector<LonePasses>* CostTables::lone_of(const plan::Plan& plan) {
  if (!hides_exchanges(plan) || plan.fuse_communication) {
    return nullptr;
  }
  const plan::PipelineShape shape = plan::pipeline_shape(plan);
  if (lone_.size() == kMostStates) {
    lone_.clear();
  }
  std::vector<LonePasses>& lone =
      lone_[{shape.schedule, shape.stages, shape.chunks, shape.microbatches}];
  for (auto stage = std::ssize(lone); stage < shape.stages; ++stage) {
    lone.push_back(lone_passes(shape, stage));
  }
  return &lone;
}

const std::vector<StageState>& CostTables::states_of(const plan::Plan& plan,
                                                     const StageParts& parts, const Site& site,
                                                     Sharing sharing) {
  const Sharing known = crossing_ ? sharing : Sharing::alone;
  return states_[index_of(known)].get(plan, [&] {
    return state_costs(model_, plan, memory_.blocks_of(plan), parts,
                       {placement_of(plan, site), *site.prices, known});
  });
}

Placement& CostTables::placement_of(const plan::Plan& plan, const Site& site) {
  return placements_.of(plan::layout_of(plan, model_.experts > 0), *site.machine);
}

Result<Time> CostTables::mean_kernels(const plan::Plan& plan) {
  const Result<PassCost>& pass = plain_pass(plan);
  return pass ? Result<Time>(mean_step(plan, *pass)) : fail(pass.error());
}

const Result<PassCost>& CostTables::plain_pass(const plan::Plan& plan) {
  return plain_passes_.get(plan, [&] {
    return sites_.of(plan).map([&](const Site& site) {
      Placement& placement = placement_of(plan, site);
      PassCost all{.chain = site.kernels, .kernels = site.kernels};
      const collective::AlgorithmChoice algorithms = plan::algorithms_of(plan);
      for (const Exchanged& one : *site.exchanges) {
        if (const auto* time = price_of(one.collective, algorithms, placement, *site.prices)) {
          all.lanes[index_of(*one.lane)] += time->alone * one.times;
          add_ports(all.ports, time->on_ports, one.times);
        }
      }
      return all;
    });
  });
}

Result<Time> CostTables::mean_step(const plan::Plan& plan) {
  return sites_.of(plan).map([&](const Site& site) {
    const BlockCosts& blocks = blocks_of(plan, site, Sharing::alone);
    return mean_step(plan, blocks.all_passes(model_.layers, plan.pp * plan::chunks_of(plan)));
  });
}

Time CostTables::mean_step(const plan::Plan& plan, const PassCost& all) {
  const std::int64_t microbatches = plan.microbatches();
  const bool rounds = plan::runs_rounds(plan);  // whose steps may begin before others end
  const StageState state = rounds ? StageState{} : whole_state(plan);
  const bool hides = hides_exchanges(plan) || (rounds && plan::splits_backward(plan.schedule));
  Time time = (hides ? all.kernels : all.chain) * microbatches + state.finish;
  time = std::max(time, state.lane(microbatches));
  if (!plan.fuse_communication) {
    time = std::max(time, *std::ranges::max_element(all.lanes) * microbatches);
    PortTimes ports = state.once;
    add_ports(ports, state.always, microbatches);
    add_ports(ports, all.ports, microbatches);
    time = crossing_ ? time : std::max(time, busiest_port(ports));
  }
  return time / plan.pp;
}

const StageState& CostTables::whole_state(const plan::Plan& plan) {
  return whole_states_.get(plan, [&] {
    const Site site = *sites_.of(plan);
    const plan::ModelPart whole{.embedding = true, .head = true, .layers = model_.layers};
    return state_costs(model_, plan, parameters_of(plan), {{whole}},
                       {placement_of(plan, site), *site.prices, Sharing::alone})
        .front();
  });
}

const StageParts* CostTables::parts_of(const plan::Plan& plan) {
  const auto& parts = parts_.get(plan, [&] { return plan::split_model(model_, plan); });
  return parts ? &*parts : nullptr;
}

const BlockCosts& CostTables::blocks_of(const plan::Plan& plan, const Site& site, Sharing sharing) {
  const Sharing known = crossing_ ? sharing : Sharing::alone;
  ByPlan<BlockCosts>& blocks = blocks_[index_of(known)];
  plan::Plan key = parallel::block_key(plan);
  const auto found = blocks.find(key);
  if (found != blocks.end()) {
    return found->second;
  }
  if (blocks.size() == kMostBlocks) {
    forget_loads();  // they are known by blocks
    blocks.clear();
  }
  BlockCosts costs = BlockCosts::of(model_, key, placement_of(key, site), *site.prices, known);
  return blocks.emplace(std::move(key), std::move(costs)).first->second;
}

StageLoads CostTables::loader(const plan::Plan& plan, const BlockCosts& blocks,
                              const StageParts& parts) {
  return {.model = model_,
          .plan = plan,
          .blocks = blocks,
          .memories = memory_.blocks_of(plan),
          .parts = parts,
          .recomputed = recomputed(plan),
          .hides = hides_exchanges(plan),
          .own_ports = !crossing_};
}

const std::vector<StagePasses>& CostTables::loads_of(const plan::Plan& plan,
                                                     const BlockCosts& blocks,
                                                     const StageParts& parts, const Site& site) {
  if (loaded_stages_ > kMostStages) {
    forget_loads();
  }
  const auto [found, is_new] = loads_.try_emplace(
      {&blocks, &parts, recomputed(plan), hides_exchanges(plan), plan.pipeline_send});
  if (is_new) {
    found->second = loader(plan, blocks, parts).all(placement_of(plan, site));
    loaded_stages_ += parts.size();
  }
  return found->second;
}

const std::vector<StagePasses>& CostTables::mixed_loads(const plan::Plan& plan,
                                                        const StageParts& parts, const Site& site,
                                                        const std::vector<std::size_t>& devices) {
  std::map<std::size_t, std::vector<StagePasses>> by_part;
  mixed_.clear();
  for (std::size_t stage = 0; stage < parts.size(); ++stage) {
    const std::size_t part = devices[stage];
    if (!by_part.contains(part)) {
      const plan::Plan key = parallel::block_key(plan);
      Placement placement(plan::layout_of(key, model_.experts > 0), (*site.parts)[part]);
      const BlockCosts blocks = BlockCosts::of(model_, key, placement, (*site.part_prices)[part]);
      by_part[part] = loader(plan, blocks, parts).all(placement_of(plan, site));
    }
    mixed_.push_back(by_part[part][stage]);
  }
  return mixed_;
}

}  // namespace orrery::estimate
