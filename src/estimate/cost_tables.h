// SPDX-License-Identifier: Apache-2.0
/// CostTables hold what bounds and values of plans are made of, each part made once for all plans
/// that have it:
///
///   parts    by the fields that split the model
///   loads    by blocks (block_key), parts, layers that recompute, how boundaries are sent
///   states   by the fields that decide what a stage holds and how replicas share it
///   memory   workload/memory/memory_tables.h
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "estimate/block_costs.h"
#include "estimate/lone_passes.h"
#include "estimate/sites.h"
#include "estimate/stage_loads.h"
#include "estimate/state_costs.h"
#include "workload/memory/memory_tables.h"
#include "workload/plan/plan_key.h"

namespace orrery::estimate {

/// The costs of one plan; valid until the next question of the tables.
struct PlanCosts {
  const machine::Machine& machine;        ///< of the plan's devices
  const StageParts& parts;                ///< by stage and chunk
  const std::vector<StagePasses>& loads;  ///< by stage, of one microbatch
  const std::vector<StageState>& states;  ///< by stage
  bool own_ports = true;                  ///< no device uses the links of another
  /// The lone passes by stage, where exchanges hide beside passes of other microbatches; else null.
  const std::vector<LonePasses>* lone = nullptr;
};

/// Returns whether exchanges of tokens run beside another microbatch, or sums become slices that
/// another stage gathers: then what a block waits for may be hidden.
bool hides_exchanges(const plan::Plan& plan);

/// Holds the costs of blocks for the plans of one model and machine. It is not thread-safe: it
/// keeps what it has computed.
class CostTables {
 public:
  CostTables(const zoo::Model& model, const machine::Machine& machine);

  /// The costs of a plan that check() and check_machine() accept. Mistakes: devices that the
  /// machine cannot have.
  /// `devices`: part of the machine, by stage; empty: of several sorts the fastest everywhere.
  Result<PlanCosts> of(const plan::Plan& plan, Sharing sharing = Sharing::alone,
                       const std::vector<std::size_t>& devices = {});
  /// Returns the step as if every stage did the mean of all: m times its passes (what compute waits
  /// for unless it may hide) and the optimizer; every lane; every port with what gradients and
  /// parameters put on it.
  Result<Time> mean_step(const plan::Plan& plan);
  /// Returns the same of blocks that wait for nothing, whatever their schedule and what hides
  /// exchanges.
  Result<Time> mean_kernels(const plan::Plan& plan);
  /// Returns what a device's kernels draw above idle power in a step at the least, mean over the
  /// stages.
  Result<Energy> kernel_energy(const plan::Plan& plan) {
    return sites_.energy(plan).map([&](Energy microbatch) {
      return microbatch * static_cast<double>(plan.microbatches()) / static_cast<double>(plan.pp);
    });
  }
  Result<Site> site(const plan::Plan& plan) { return sites_.of(plan); }
  /// Returns Sites::fitted, of plans that nothing has checked.
  Result<const machine::Machine*> fitted(const plan::Plan& plan) { return sites_.fitted(plan); }
  /// Returns the plan's parts; null where check() accepts none.
  const StageParts* parts_of(const plan::Plan& plan);
  footprint::MemoryTables& memory() { return memory_; }
  /// Returns what blocks hold, for who asks of their parameters alone, which neither a microbatch
  /// nor exchanges change. Valid until another plan is asked for.
  const footprint::BlockMemories& parameters_of(plan::Plan plan) {
    const plan::Plan plain;
    plan.microbatch = plain.microbatch;
    plan.cp_exchange = plain.cp_exchange;
    plan.moe_dispatch = plain.moe_dispatch;
    return memory_.blocks_of(plan);
  }
  const zoo::Model& model() const { return model_; }

 private:
  static constexpr std::size_t kMostBlocks = 8192;   // some 64 MB
  static constexpr std::size_t kMostStates = 4096;   // some 100 MB where stages are many
  static constexpr std::size_t kMostStages = 65536;  // of all loads, some 50 MB

  template <class Value>
  using ByPlan = std::unordered_map<plan::Plan, Value, plan::PlanHash>;  // never iterated over
  /// The fields that decide what a stage holds and how replicas share it.
  using StateFields =
      plan::AllFieldsBut<&plan::Plan::microbatch, &plan::Plan::global_batch,
                         &plan::Plan::batch_shares, &plan::Plan::sequence, &plan::Plan::recompute,
                         &plan::Plan::recompute_modules, &plan::Plan::recompute_layers,
                         &plan::Plan::offload_activations, &plan::Plan::overlap_ep>;
  /// These fields count where the model is not split.
  using WholeFields =
      plan::AllFieldsBut<&plan::Plan::chunks, &plan::Plan::stage_layers, &plan::Plan::microbatch,
                         &plan::Plan::global_batch, &plan::Plan::batch_shares,
                         &plan::Plan::sequence, &plan::Plan::recompute,
                         &plan::Plan::recompute_modules, &plan::Plan::recompute_layers,
                         &plan::Plan::offload_activations, &plan::Plan::overlap_ep,
                         &plan::Plan::cp_exchange, &plan::Plan::moe_dispatch>;
  /// The fields that split_model() reads.
  using PartFields = plan::FieldsAlone<&plan::Plan::pp, &plan::Plan::schedule, &plan::Plan::chunks,
                                       &plan::Plan::stage_layers>;

  const BlockCosts& blocks_of(const plan::Plan& plan, const Site& site, Sharing sharing);
  StageLoads loader(const plan::Plan& plan, const BlockCosts& blocks, const StageParts& parts);
  const std::vector<StagePasses>& loads_of(const plan::Plan& plan, const BlockCosts& blocks,
                                           const StageParts& parts, const Site& site);
  const std::vector<StagePasses>& mixed_loads(const plan::Plan& plan, const StageParts& parts,
                                              const Site& site,
                                              const std::vector<std::size_t>& devices);
  const std::vector<StageState>& states_of(const plan::Plan& plan, const StageParts& parts,
                                           const Site& site, Sharing sharing);
  Time mean_step(const plan::Plan& plan, const PassCost& all);
  /// Returns the passes of the whole model as if nothing waited: kernels, lanes and ports. As of().
  const Result<PassCost>& plain_pass(const plan::Plan& plan);
  /// Returns the whole model's states, as if one stage had all of them: no piece is faster for its
  /// part. Requires devices that the machine can have.
  const StageState& whole_state(const plan::Plan& plan);
  Placement& placement_of(const plan::Plan& plan, const Site& site);
  const std::vector<LonePasses>* lone_of(const plan::Plan& plan);
  void forget_loads() {
    loads_.clear();
    loaded_stages_ = 0;
  }

  zoo::Model model_;
  Sites sites_;
  bool crossing_ = false;  ///< devices share links: whose port is busiest is not known
  Placements placements_;
  std::array<ByPlan<BlockCosts>, 2> blocks_;  ///< by Sharing
  std::map<std::tuple<const BlockCosts*, const StageParts*, std::int64_t, bool, plan::PipelineSend>,
           std::vector<StagePasses>>
      loads_;                       // never iterated over
  std::size_t loaded_stages_ = 0;   ///< of all of them
  std::vector<StagePasses> mixed_;  ///< of devices that differ, asked for last
  /// Holds lone passes by schedule, stages, chunks and microbatches.
  std::map<std::tuple<plan::Schedule, std::int64_t, std::int64_t, std::int64_t>,
           std::vector<LonePasses>>
      lone_;
  footprint::MemoryTables memory_{model_};
  /// These parts are never forgotten: loads_ knows them by where they lie.
  plan::PlanTable<PartFields, Result<StageParts>, std::numeric_limits<std::size_t>::max()> parts_;
  std::array<plan::PlanTable<StateFields, std::vector<StageState>, kMostStates>, 2>
      states_;  ///< by Sharing
  plan::PlanTable<WholeFields, StageState, kMostStates> whole_states_;
  /// The pass of the plan before, for others that differ in states alone.
  plan::PlanTable<
      plan::AllFieldsBut<&plan::Plan::zero, &plan::Plan::offload_optimizer,
                         &plan::Plan::overlap_grad_reduce, &plan::Plan::overlap_param_gather>,
      Result<PassCost>, 1>
      plain_passes_;
};

}  // namespace orrery::estimate
