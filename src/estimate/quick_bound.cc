// SPDX-License-Identifier: Apache-2.0
#include "estimate/quick_bound.h"

#include <algorithm>
#include <array>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "collective/group_extents.h"
#include "estimate/block_costs.h"
#include "estimate/plan_memo.h"
#include "workload/memory/block_memory.h"
#include "workload/memory/state_memory.h"
#include "workload/plan/data_axes.h"
#include "workload/plan/layout.h"
#include "workload/plan/quantize.h"
#include "workload/plan/schedule.h"

namespace orrery::estimate {
namespace {

/// What the state of one stage costs over the step at the least.
struct StateCost {
  Time finish{0};          ///< the optimizer's kernels
  Time reduced_once{0};    ///< reductions of gradients behind the last backward or beside it
  Time lane{0};            ///< busiest lane of gradients and parameters, once a step
  Time per_microbatch{0};  ///< the same for every microbatch

  void take_longer(Time once, Time always, std::int64_t microbatches) {
    if (once + always * microbatches > lane + per_microbatch * microbatches) {
      lane = once;
      per_microbatch = always;
    }
  }
};

using StageParts = std::vector<std::vector<plan::ModelPart>>;

/// The fields that decide what a stage holds and how replicas share it.
plan::Plan state_key(plan::Plan key) {
  const plan::Plan plain;
  key.microbatch = 1;
  key.global_batch = key.dp;
  key.sequence = 0;
  key.recompute = plain.recompute;
  key.recompute_modules.clear();
  key.recompute_layers = 0;
  key.offload_activations = 0;
  key.overlap_ep = plain.overlap_ep;
  return key;
}

plan::Plan parts_key(const plan::Plan& plan) {
  plan::Plan key;
  key.pp = plan.pp;
  key.schedule = plan.schedule;
  key.chunks = plan.chunks;
  key.stage_layers = plan.stage_layers;
  return key;
}

template <class Value>
using ByPlan = std::unordered_map<plan::Plan, Value, PlanHash>;  // never iterated over

}  // namespace

class QuickBound::Memo {
 public:
  Memo(const zoo::Model& model, const machine::Machine& machine)
      : model_(model), machine_(machine) {}

  Result<Time> least_time(const plan::Plan& plan) {
    const auto site = site_of(plan);
    if (!site) {
      return fail(site.error());
    }
    const BlockCosts* blocks = blocks_of(plan, **site);
    const StageParts* parts = parts_of(plan);
    if (blocks == nullptr || parts == nullptr) {
      return fail("a plan that check() accepts");
    }
    return longest(plan, *blocks, *parts, state_of(plan, *parts, **site));
  }

 private:
  /// The machine as plans of some clocks and so many devices see it.
  struct Site {
    machine::Machine machine;
    Prices prices;
  };

  Result<Site*> site_of(const plan::Plan& plan) {
    const std::pair where{plan.devices(), plan.clocks};
    const auto found = std::find_if(sites_.begin(), sites_.end(),
                                    [&](const auto& site) { return site.first == where; });
    if (found != sites_.end()) {
      return found->second.get();
    }
    auto fitted = machine::with_devices(machine_, plan.devices());
    if (!fitted) {
      return fail(std::move(fitted.error()));
    }
    if (plan.clocks == plan::Clocks::boost) {
      fitted->device = compute::at_boost(std::move(fitted->device));
    }
    sites_.emplace_back(where, std::make_unique<Site>(Site{std::move(*fitted), {}}));
    return sites_.back().second.get();
  }

  /// Null: the plan's blocks cannot be lowered.
  const BlockCosts* blocks_of(const plan::Plan& plan, Site& site) {
    plan::Plan key = block_key(plan);
    const auto found = blocks_.find(key);
    if (found != blocks_.end()) {
      return &found->second;
    }
    auto costs = BlockCosts::of(model_, key, site.machine, site.prices);
    return costs ? &blocks_.emplace(std::move(key), std::move(*costs)).first->second : nullptr;
  }

  const StageParts* parts_of(const plan::Plan& plan) {
    plan::Plan key = parts_key(plan);
    const auto found = parts_.find(key);
    if (found != parts_.end()) {
      return &found->second;
    }
    auto parts = plan::split_model(model_, key);
    return parts ? &parts_.emplace(std::move(key), std::move(*parts)).first->second : nullptr;
  }

  const StateCost& state_of(const plan::Plan& plan, const StageParts& parts, Site& site) {
    plan::Plan key = state_key(plan);
    const auto found = states_.find(key);
    if (found != states_.end()) {
      return found->second;
    }
    const StateCost cost = state_cost(plan, parts, site);
    return states_.emplace(std::move(key), cost).first->second;
  }

  /// The least finish of a stage, and the most that any puts on a lane.
  StateCost state_cost(const plan::Plan& plan, const StageParts& parts, Site& site) {
    if (plan.offload_params != plan::Offload::none || plan.lora_rank > 0) {
      return {};
    }
    const footprint::BlockMemories memories = footprint::block_memories(model_, plan);
    StateCost cost;
    for (const auto& stage : parts) {
      footprint::OwnedParameters owned;
      for (const plan::ModelPart& part : stage) {
        for (const plan::BlockKind kind : plan::blocks_of(model_, part)) {
          owned += footprint::owned_parameters(memories, plan, kind);
        }
      }
      const StateCost of_stage = stage_cost(plan, owned, site);
      const bool first = &stage == &parts.front();
      cost.finish = first ? of_stage.finish : std::min(cost.finish, of_stage.finish);
      cost.reduced_once =
          first ? of_stage.reduced_once : std::min(cost.reduced_once, of_stage.reduced_once);
      cost.take_longer(of_stage.lane, of_stage.per_microbatch, plan.microbatches());
    }
    return cost;
  }

  StateCost stage_cost(const plan::Plan& plan, const footprint::OwnedParameters& owned,
                       Site& site) {
    StateCost cost;
    parallel::OptimizerShare share;
    for (const plan::Owner owner : {plan::Owner::dense, plan::Owner::expert}) {
      const std::int64_t parameters = owner == plan::Owner::dense ? owned.dense : owned.expert;
      const std::int64_t shards = plan::optimizer_shards(plan, owner);
      share.whole += parameters;
      share.local += parameters / shards;
      if (parameters > 0) {
        add_lanes(plan, owner, parameters, site, cost);
      }
    }
    share.copies =
        plan.quantized_params ? Bytes(0) : graph::bytes_of(plan.compute_type, share.local);
    for (const graph::Operator& kernel : parallel::update_kernels(plan, share)) {
      cost.finish += site.prices.kernel(kernel, site.machine.device).alone;
    }
    return cost;
  }

  void add_lanes(const plan::Plan& plan, plan::Owner owner, std::int64_t parameters, Site& site,
                 StateCost& cost) {
    std::array<Time, plan::kAxisCount> once{};  // hops of different axes run beside each other
    std::array<Time, plan::kAxisCount> always{};
    const Bytes gradients = graph::bytes_of(plan.grad_reduce_type, parameters);
    for (const plan::GradientHop& hop : plan::gradient_hops(plan, owner)) {
      const Time time = price(plan, hop.axis, hop.kind, gradients / hop.divisor, site);
      (hop.every_microbatch ? always : once)[static_cast<std::size_t>(hop.axis)] += time;
    }
    cost.reduced_once = std::max(cost.reduced_once, *std::max_element(once.begin(), once.end()));
    const Bytes stored = graph::bytes_of(plan.compute_type, parameters);
    const bool narrow = plan.quantized_params || plan.quantization != plan::Quantization::none;
    if (const auto hop = plan::parameter_hop(plan, owner); hop && !narrow) {
      const Time gather =
          price(plan, hop->axis, graph::CollectiveKind::all_gather, stored / hop->divisor, site);
      const bool per_pass = plan.zero == 3 && plan.reshard_after_forward;
      (per_pass ? always : once)[static_cast<std::size_t>(hop->axis)] +=
          gather * (per_pass ? 2 : 1);
    }
    for (std::size_t axis = 0; axis < once.size(); ++axis) {
      cost.take_longer(once[axis], always[axis], plan.microbatches());
    }
  }

  /// Of one buffer: no faster in pieces.
  Time price(const plan::Plan& plan, plan::Axis axis, graph::CollectiveKind kind, Bytes bytes,
             Site& site) {
    const plan::RankLayout layout = plan::layout_of(plan, model_.experts > 0);
    const std::vector<collective::Extent> extents =
        collective::group_extents(layout.members(axis), 0, site.machine);
    if (extents.empty() || bytes == Bytes(0)) {
      return Time(0);
    }
    return site.prices
        .collective({.kind = kind,
                     .algorithm = plan::algorithms_of(plan)[graph::GroupIndex(axis)],
                     .bytes = bytes,
                     .copies = 0,
                     .extents = extents,
                     .devices = plan.devices()},
                    site.machine, {})
        .alone;
  }

  /// Microbatches whose backward may come after the first reduction of the last one's gradients.
  static std::int64_t last_together(const plan::PipelineShape& shape) {
    return shape.schedule == plan::Schedule::interleaved
               ? std::min(shape.stages, shape.microbatches)
               : 1;
  }

  static Time longest(const plan::Plan& plan, const BlockCosts& blocks, const StageParts& parts,
                      const StateCost& state) {
    const plan::PipelineShape shape = plan::pipeline_shape(plan);
    const bool hides =
        plan::splits_backward(plan.schedule) || plan.overlap_ep == plan::OverlapExperts::microbatch;
    const bool recomputes =
        plan.recompute != plan::Recompute::none || !plan.recompute_modules.empty();
    const auto time_of = [&](const PassCost& cost) { return hides ? cost.kernels : cost.chain; };
    const bool both_ends = plan.schedule == plan::Schedule::dualpipe;
    Time fill{0};
    Time drain{0};
    Time bound = state.lane + state.per_microbatch * shape.microbatches;
    for (const auto& stage : parts) {
      PassCost sum;
      Time back{0};
      Time first_forward{0};
      Time first_backward{0};
      for (const plan::ModelPart& part : stage) {
        const PassCost forward = blocks.forward(part);
        const PassCost backward =
            blocks.backward(part, !recomputes                  ? 0
                                  : plan.recompute_layers == 0 ? part.layers
                                                               : plan.recompute_layers);
        if (&part == &stage.front()) {
          first_forward = time_of(forward);
          first_backward = time_of(backward);
        }
        back += time_of(backward);
        sum += forward;
        sum += backward;
      }
      const Time own = fill + time_of(sum) * shape.microbatches;
      bound = std::max(bound, own + drain + state.finish);
      if (!hides) {
        const Time beside = back * last_together(shape);
        bound = std::max(bound, own - beside + state.reduced_once + state.finish);
      }
      for (const Time lane : sum.lanes) {
        bound = std::max(bound, lane * shape.microbatches);
      }
      fill += both_ends ? Time(0) : first_forward;
      drain += hides ? Time(0) : first_backward;
    }
    return bound;
  }

  zoo::Model model_;
  machine::Machine machine_;
  std::vector<std::pair<std::pair<std::int64_t, plan::Clocks>, std::unique_ptr<Site>>> sites_;
  ByPlan<BlockCosts> blocks_;
  ByPlan<StageParts> parts_;
  ByPlan<StateCost> states_;
};

QuickBound::QuickBound(const zoo::Model& model, const machine::Machine& machine)
    : memo_(std::make_unique<Memo>(model, machine)) {}
QuickBound::~QuickBound() = default;
QuickBound::QuickBound(QuickBound&&) noexcept = default;
QuickBound& QuickBound::operator=(QuickBound&&) noexcept = default;

Result<Time> QuickBound::least_time(const plan::Plan& plan) {
  return memo_->least_time(plan);
}

}  // namespace orrery::estimate
