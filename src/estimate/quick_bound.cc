// SPDX-License-Identifier: Apache-2.0
#include "estimate/quick_bound.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "estimate/block_costs.h"
#include "estimate/shared_links.h"
#include "estimate/sites.h"
#include "estimate/stage_loads.h"
#include "estimate/state_costs.h"
#include "workload/memory/memory_tables.h"
#include "workload/plan/layout.h"
#include "workload/plan/plan_key.h"
#include "workload/plan/schedule.h"

namespace orrery::estimate {
namespace {

constexpr std::size_t kMostKept = 65536;  // of a sort, some 250 MB

/// The fields that decide what a stage holds and how replicas share it.
using StateFields =
    plan::AllFieldsBut<&plan::Plan::microbatch, &plan::Plan::global_batch,
                       &plan::Plan::batch_shares, &plan::Plan::sequence, &plan::Plan::recompute,
                       &plan::Plan::recompute_modules, &plan::Plan::recompute_layers,
                       &plan::Plan::offload_activations, &plan::Plan::overlap_ep>;
/// Those of split_model().
using PartFields = plan::FieldsAlone<&plan::Plan::pp, &plan::Plan::schedule, &plan::Plan::chunks,
                                     &plan::Plan::stage_layers>;

template <class Value>
using ByPlan = std::unordered_map<plan::Plan, Value, plan::PlanHash>;  // never iterated over

template <class Value>
Value& keep(ByPlan<Value>& values, plan::Plan key, Value value) {
  if (values.size() == kMostKept) {
    values.clear();
  }
  return values.emplace(std::move(key), std::move(value)).first->second;
}

}  // namespace

class QuickBound::Memo {
 public:
  Memo(const zoo::Model& model, const machine::Machine& machine)
      : model_(model),
        sites_(machine),
        crossing_(std::any_of(machine.network.begin(), machine.network.end(), is_shared)) {}

  Result<Time> least_time(const plan::Plan& plan) {
    const auto site = sites_.of(plan);
    if (!site) {
      return fail(site.error());
    }
    const StageParts* parts = parts_of(plan);
    if (parts == nullptr) {
      return fail("a plan that check() accepts");
    }
    return longest(plan, blocks_of(plan, *site), *parts, *site);
  }

  Result<Time> least_busy(const plan::Plan& plan) {
    const auto site = sites_.of(plan);
    if (!site) {
      return fail(site.error());
    }
    const StageParts* parts = parts_of(plan);
    if (parts == nullptr) {
      return fail("a plan that check() accepts");
    }
    Time busy{0};
    for (const StagePasses& load : loads_of(plan, blocks_of(plan, *site), *parts, *site)) {
      busy += load.kernels;
    }
    return busy * plan::pipeline_shape(plan).microbatches / std::ssize(*parts);
  }

  Result<Time> least_kernels(const plan::Plan& plan) {
    const auto site = sites_.of(plan);
    if (!site) {
      return fail(site.error());
    }
    plan::Plan key = block_key(plan);
    key.order.clear();  // kernels do not know where they run
    const auto found = kernels_.find(key);
    Time kernels = found != kernels_.end() ? found->second : Time(0);
    if (found == kernels_.end()) {
      std::vector<Time> by_kind;
      for (const auto& block : parallel::block_kernels(model_, block_key(plan))) {
        by_kind.emplace_back(0);
        for (const graph::Operator& kernel : block) {
          by_kind.back() += site->prices->kernel(kernel, *site->machine).alone;
        }
      }
      for (const plan::BlockKind kind : plan::blocks_of(
               model_, plan, {.embedding = true, .head = true, .layers = model_.layers})) {
        kernels += by_kind[kind];
      }
      keep(kernels_, std::move(key), kernels);
    }
    return kernels * plan.microbatches() / plan.pp;
  }

  Result<Bytes> least_states(const plan::Plan& plan) {
    const StageParts* parts = parts_of(plan);
    if (parts == nullptr) {
      return fail("a plan that check() accepts");
    }
    return mean_states(model_, plan, memories_of(plan), *parts);
  }

  Result<Time> least_copies(const plan::Plan& plan) {
    const auto site = sites_.of(plan);
    const StageParts* parts = parts_of(plan);
    if (!site || parts == nullptr) {
      return fail(site ? Error("a plan that check() accepts") : site.error());
    }
    return mean_copies(states_of(plan, *parts, *site));
  }

  Result<Bytes> least_memory(const plan::Plan& plan) {
    const auto site = sites_.of(plan);
    if (!site || parts_of(plan) == nullptr) {
      return fail(site ? Error("a plan that check() accepts") : site.error());
    }
    return tables_.least(plan, *site->machine);
  }

 private:
  const BlockCosts& blocks_of(const plan::Plan& plan, const Site& site) {
    plan::Plan key = block_key(plan);
    const auto found = blocks_.find(key);
    if (found != blocks_.end()) {
      return found->second;
    }
    if (blocks_.size() == kMostKept) {
      loads_.clear();  // they are known by blocks
      blocks_.clear();
    }
    BlockCosts costs = BlockCosts::of(model_, key, *site.machine, *site.prices);
    return blocks_.emplace(std::move(key), std::move(costs)).first->second;
  }

  const footprint::BlockMemories& memories_of(const plan::Plan& plan) {
    return tables_.blocks_of(plan);
  }

  /// Of a chunk's activations, one way, of one microbatch: what a pass cannot run ahead of, since a
  /// layer waits for the copy of the last but one before it.
  static Time copies(const plan::Plan& plan, std::int64_t layers, Bytes kept,
                     const machine::Machine& machine) {
    if (plan.offload_activations <= 0 || layers <= 2) {
      return Time(0);
    }
    const double share = static_cast<double>(layers - 2) / static_cast<double>(layers);
    return kept * (plan.offload_activations * share) / machine::fastest_tier(machine, 1);
  }

  const StageParts* parts_of(const plan::Plan& plan) {
    const auto& parts = parts_.get(plan, [&] { return plan::split_model(model_, plan); });
    return parts ? &*parts : nullptr;
  }

  const std::vector<StageState>& states_of(const plan::Plan& plan, const StageParts& parts,
                                           const Site& site) {
    return states_.get(plan, [&] {
      return state_costs(model_, plan, memories_of(plan), parts, placement_of(plan, site),
                         *site.prices);
    });
  }

  /// Whether exchanges of tokens run beside another microbatch, or sums become slices that another
  /// stage gathers.
  static bool hides(const plan::Plan& plan) {
    return plan.fuse_communication || plan.overlap_ep == plan::OverlapExperts::microbatch ||
           (plan.schedule == plan::Schedule::dualpipe &&
            plan.overlap_ep != plan::OverlapExperts::off);
  }

  /// Microbatches whose backward may come after the first reduction of the last one's gradients.
  static std::int64_t last_together(const plan::PipelineShape& shape) {
    return shape.schedule == plan::Schedule::interleaved
               ? std::min(shape.stages, shape.microbatches)
               : 1;
  }

  const std::vector<StagePasses>& loads_of(const plan::Plan& plan, const BlockCosts& blocks,
                                           const StageParts& parts, const Site& site) {
    const bool recomputes =
        plan.recompute != plan::Recompute::none || !plan.recompute_modules.empty();
    const std::int64_t again = recomputes ? plan.recompute_layers : -1;
    const bool hides = Memo::hides(plan);
    const auto [found, is_new] =
        loads_.try_emplace({&blocks, &parts, again, hides, plan.pipeline_send});
    if (is_new) {
      const bool looks_at_ports = !crossing_ && !plan.fuse_communication;
      found->second = StageLoads{.model = model_,
                                 .plan = plan,
                                 .blocks = blocks,
                                 .memories = memories_of(plan),
                                 .parts = parts,
                                 .recomputed = again,
                                 .hides = hides}
                          .all(looks_at_ports ? &placement_of(plan, site) : nullptr);
    }
    return found->second;
  }

  Placement& placement_of(const plan::Plan& plan, const Site& site) {
    return placements_.of(plan::layout_of(plan, model_.experts > 0), *site.machine);
  }

  Time longest(const plan::Plan& plan, const BlockCosts& blocks, const StageParts& parts,
               const Site& site) {
    const std::vector<StageState>& states = states_of(plan, parts, site);
    Time finish = Time::max();
    for (const StageState& state : states) {
      finish = std::min(finish, state.finish);
    }
    const plan::PipelineShape shape = plan::pipeline_shape(plan);
    const bool both_ends = plan.schedule == plan::Schedule::dualpipe;
    const bool hides = Memo::hides(plan);
    const bool drains = !hides && !plan::splits_backward(plan.schedule);
    const std::vector<StagePasses>& loads = loads_of(plan, blocks, parts, site);
    Time fill{0};
    Time drain{0};
    Time bound{0};
    std::vector<Time> fills;  // by how many stages are before
    for (std::size_t s = 0; s < parts.size(); ++s) {
      const StagePasses& load = loads[s];
      Time work{0};
      Time copied{0};
      Time back{0};
      Time least_forward = Time::max();
      ChunkPasses first;
      for (std::size_t c = 0; c < load.chunks.size(); ++c) {
        ChunkPasses chunk = load.chunks[c];
        const Time copy = copies(plan, parts[s][c].layers, chunk.kept, *site.machine);
        chunk.forward = hides ? chunk.forward : std::max(chunk.forward, copy);
        chunk.backward = hides ? chunk.backward : std::max(chunk.backward, copy);
        first = c == 0 ? chunk : first;
        least_forward = std::min(least_forward, chunk.forward);
        back += chunk.backward;
        work += chunk.forward + chunk.backward;
        copied += copy;
      }
      fills.push_back(fill);
      const Time before = both_ends ? fills[std::min(s, parts.size() - 1 - s)] : fill;
      const Time own = before + std::max(work, copied) * shape.microbatches;
      const Time path = own + drain + finish;
      const Time lane = states[s].lane(shape.microbatches);
      bound = std::max({bound, lane, path + load.lost_beside(lane, path, shape.microbatches)});
      if (!crossing_ && !plan.fuse_communication) {
        const Time stored =
            plan.offload_activations > 0
                ? load.kept() * plan.offload_activations / machine::fastest_tier(*site.machine, 1)
                : Time(0);
        bound = std::max(bound, load.on_ports(states[s], stored, shape.microbatches));
      }
      if (drains) {
        const Time beside = back * last_together(shape);
        const Time warmup = least_forward * (plan::warmup(shape, static_cast<std::int64_t>(s)) + 1);
        const Time reduced = states[s].reduction(shape.microbatches);
        bound = std::max(
            {bound, own - beside + states[s].reduced + finish, before + warmup + reduced + finish});
      }
      bound = std::max(
          bound, *std::max_element(load.lanes.begin(), load.lanes.end()) * shape.microbatches);
      fill += first.forward;
      drain += drains ? first.backward : Time(0);
    }
    return bound;
  }

  zoo::Model model_;
  Sites sites_;
  bool crossing_ = false;  ///< devices share links: whose port is busiest is not known
  Placements placements_;
  ByPlan<BlockCosts> blocks_;
  /// By blocks, parts, layers that recompute, whether communication is hidden, and how boundaries
  /// are sent.
  std::map<std::tuple<const BlockCosts*, const StageParts*, std::int64_t, bool, plan::PipelineSend>,
           std::vector<StagePasses>>
      loads_;             // never iterated over
  ByPlan<Time> kernels_;  // of a microbatch, over all stages
  footprint::MemoryTables tables_{model_};
  /// Never forgotten: loads_ knows them by where they lie.
  plan::PlanTable<PartFields, Result<StageParts>, std::numeric_limits<std::size_t>::max()> parts_;
  plan::PlanTable<StateFields, std::vector<StageState>, kMostKept> states_;
};

QuickBound::QuickBound(const zoo::Model& model, const machine::Machine& machine)
    : memo_(std::make_unique<Memo>(model, machine)) {}
QuickBound::~QuickBound() = default;
QuickBound::QuickBound(QuickBound&&) noexcept = default;
QuickBound& QuickBound::operator=(QuickBound&&) noexcept = default;

Result<Time> QuickBound::least_time(const plan::Plan& plan) {
  return memo_->least_time(plan);
}

Result<Time> QuickBound::least_kernels(const plan::Plan& plan) {
  return memo_->least_kernels(plan);
}

Result<Bytes> QuickBound::least_states(const plan::Plan& plan) {
  return memo_->least_states(plan);
}

Result<Time> QuickBound::least_copies(const plan::Plan& plan) {
  return memo_->least_copies(plan);
}

Result<Time> QuickBound::least_busy(const plan::Plan& plan) {
  return memo_->least_busy(plan);
}

Result<Bytes> QuickBound::least_memory(const plan::Plan& plan) {
  return memo_->least_memory(plan);
}

}  // namespace orrery::estimate
