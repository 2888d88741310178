// SPDX-License-Identifier: Apache-2.0
#include "estimate/state_costs.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "machine/device_groups.h"
#include "workload/memory/state_memory.h"
#include "workload/parallel/block_workload.h"
#include "workload/plan/data_axes.h"
#include "workload/plan/layout.h"
#include "workload/plan/low_bandwidth.h"
#include "workload/plan/rounds.h"

namespace orrery::estimate {
namespace {

/// The lanes of one block, or of one owner's buffer of a stage.
struct Lanes {
  Time once{0};
  Time always{0};
  Time apart{0};         ///< of always: on another axis
  Time kernels_once{0};  ///< that quantise and copy
  Time kernels_always{0};
  PortTimes once_ports{};
  PortTimes always_ports{};
};
struct KindState {
  footprint::OwnedParameters owned;
  std::array<Lanes, 2> reduced;  ///< by Owner, in a buffer of its own
  std::array<Lanes, 2> gathered;
};

void add(Lanes& sum, const Lanes& more, std::int64_t often) {
  sum.once += more.once * often;
  sum.always += more.always * often;
  sum.apart += more.apart * often;
  sum.kernels_once += more.kernels_once * often;
  sum.kernels_always += more.kernels_always * often;
  add_ports(sum.once_ports, more.once_ports, often);
  add_ports(sum.always_ports, more.always_ports, often);
}

/// BlockCounts says how many blocks of each kind a stage has.
using BlockCounts = std::vector<std::int64_t>;

class StateCosts {
 public:
  StateCosts(const zoo::Model& model, const plan::Plan& plan,
             const footprint::BlockMemories& memories, Placement& placement, Prices& prices,
             Sharing sharing)
      : model_(model),
        plan_(plan),
        memories_(memories),
        placement_(placement),
        machine_(placement.machine()),
        prices_(prices),
        sharing_(sharing) {
    for (plan::BlockKind kind = 0; kind < memories.blocks.size(); ++kind) {
      kinds_.push_back(kind_state(kind));
    }
  }

  BlockCounts counts(const std::vector<plan::ModelPart>& stage) const {
    BlockCounts counts(kinds_.size(), 0);
    for (const plan::ModelPart& part : stage) {
      counts[plan::kEmbeddingBlock] += part.embedding ? 1 : 0;
      counts[plan::kHeadBlock] += part.head ? 1 : 0;
      for (std::int64_t i = 0; i < part.layers; ++i) {
        ++counts[plan::layer_block(model_, plan_, part.first_layer + i)];
      }
    }
    return counts;
  }

  StageState of(const BlockCounts& counts) {
    footprint::OwnedParameters owned;
    std::array<Lanes, 2> reduced{};
    std::array<Lanes, 2> gathered{};
    for (plan::BlockKind kind = 0; kind < counts.size(); ++kind) {
      if (counts[kind] == 0) {
        continue;
      }
      owned += kinds_[kind].owned * counts[kind];
      for (std::size_t owner = 0; owner < reduced.size(); ++owner) {
        add(reduced[owner], kinds_[kind].reduced[owner], counts[kind]);
        add(gathered[owner], kinds_[kind].gathered[owner], counts[kind]);
      }
    }
    const bool bucketed = plan::bucket_size(plan_) > Bytes(0);
    parallel::OptimizerShare share;
    Time updated{0};
    for (const plan::Owner owner : {plan::Owner::dense, plan::Owner::expert}) {
      const bool dense = owner == plan::Owner::dense;
      const std::int64_t parameters = dense ? owned.dense : owned.expert;
      share.whole += parameters;
      updated += gather_of_updated(owner, parameters);
      share.local += parameters / plan::optimizer_shards(plan_, owner);
      share.matrices +=
          (dense ? owned.matrices : owned.expert_matrices) / plan::optimizer_shards(plan_, owner);
      if (!plan_.overlap_grad_reduce || bucketed) {  // one buffer is no slower
        reduced[static_cast<std::size_t>(owner)] = reduction(owner, parameters);
      }
      if (bucketed && plan_.zero < 3) {
        gathered[static_cast<std::size_t>(owner)] = gather(owner, parameters);
      }
    }
    const std::size_t busiest =
        reduced[0].once + reduced[0].always + gathered[0].once + gathered[0].always >=
                reduced[1].once + reduced[1].always + gathered[1].once + gathered[1].always
            ? 0
            : 1;
    StageState state{.finish = kernels(share) + copies(share),
                     .reduced = reduced[busiest].once,
                     .reduced_always = reduced[busiest].always,
                     .updated = updated,
                     .gathered = gathered[busiest].once,
                     .gathered_always = gathered[busiest].always,
                     .gathered_apart = gathered[busiest].apart};
    for (const auto& lanes : {reduced, gathered}) {
      for (const Lanes& one : lanes) {
        add_ports(state.once, one.once_ports);
        add_ports(state.always, one.always_ports);
        state.finish += one.kernels_once;
        state.kernels_always += one.kernels_always;
      }
    }
    if (plan::runs_rounds(plan_)) {
      add_round(share.local, state);
    }
    return state;
  }

 private:
  KindState kind_state(plan::BlockKind kind) {
    KindState state{.owned = footprint::owned_parameters(memories_, plan_, kind),
                    .reduced = {},
                    .gathered = {}};
    for (const plan::Owner owner : {plan::Owner::dense, plan::Owner::expert}) {
      const bool dense = owner == plan::Owner::dense;
      const std::int64_t parameters = dense ? state.owned.dense : state.owned.expert;
      const auto at = static_cast<std::size_t>(owner);
      state.reduced[at] = reduction(owner, parameters);
      state.gathered[at] = gather(owner, parameters);
    }
    return state;
  }

  Time kernels(parallel::OptimizerShare share) {
    share.copies =
        plan_.quantized_params ? Bytes(0) : graph::bytes_of(plan_.compute_type, share.local);
    Time time{0};
    for (const graph::Operator& kernel : parallel::update_kernels(plan_, share)) {
      time += prices_.kernel(kernel, machine_).alone;
    }
    return time;
  }

  Time copies(const parallel::OptimizerShare& share) const {
    if (plan_.offload_optimizer != plan::Offload::cpu &&
        plan_.offload_optimizer != plan::Offload::nvme) {
      return Time(0);
    }
    const Bytes out = 2 * graph::bytes_of(plan_.grad_type, share.local) +
                      2 * graph::bytes_of(plan_.master_type, share.local) +
                      4 * graph::bytes_of(plan_.moment_type, share.local);
    return out / machine::fastest_tier(machine_, 1);
  }

  /// Returns the time of a reduction on the busiest axis: hops of different axes run beside each
  /// other.
  Lanes reduction(plan::Owner owner, std::int64_t parameters) {
    Lanes lanes;
    const Bytes gradients = graph::bytes_of(plan_.grad_reduce_type, parameters);
    for (const plan::GradientHop& hop : plan::gradient_hops(plan_, owner)) {
      PortTimes& ports = hop.every_microbatch ? lanes.always_ports : lanes.once_ports;
      Time& longest = hop.every_microbatch ? lanes.always : lanes.once;
      const Bytes whole = gradients / hop.divisor;
      if (!plan_.quantized_reduce || hop.kind != graph::CollectiveKind::reduce_scatter) {
        longest = std::max(longest, price(hop.axis, hop.kind, whole, ports));
        continue;
      }
      Time& kernels = hop.every_microbatch ? lanes.kernels_always : lanes.kernels_once;
      for (const plan::ReduceHop& part : plan::reduce_hops(plan_, hop.axis, ranks(hop.axis))) {
        const Bytes own = whole / part.divisor;
        const Bytes sent = plan::quantized_reduce_bytes(plan_, own);
        longest =
            std::max(longest, price(part.axis, graph::CollectiveKind::all_to_all, sent, ports));
        kernels += kernel(own + sent) + kernel(sent + own / part.ranks);
      }
    }
    return lanes;
  }

  Time gather_of_updated(plan::Owner owner, std::int64_t parameters) {
    const auto hop = plan::update_hop(plan_, owner);
    if (!hop || parameters == 0) {
      return Time(0);
    }
    const graph::DataType type = plan_.quantized_params ? graph::DataType::fp8 : plan_.compute_type;
    const Bytes whole = graph::bytes_of(type, parameters) / hop->divisor;
    const Bytes sent = plan_.quantized_gather ? plan::quantized_gather_bytes(plan_, whole) : whole;
    PortTimes ports{};
    const Time time = price(hop->axis, graph::CollectiveKind::all_gather, sent, ports);
    return plan_.quantized_gather
               ? time + kernel((whole + sent) / ranks(hop->axis)) + kernel(whole + sent)
               : time;
  }

  /// The gathers of parameters in the type in which they are computed with.
  Lanes gather(plan::Owner owner, std::int64_t parameters) {
    const auto hop = plan::parameter_hop(plan_, owner);
    if (!hop || plan_.quantization != plan::Quantization::none) {
      return {};
    }
    const Bytes whole = graph::bytes_of(plan_.compute_type, parameters) / hop->divisor;
    const Bytes sent = plan_.quantized_gather ? plan::quantized_gather_bytes(plan_, whole) : whole;
    PortTimes ports{};
    const Time time = price(hop->axis, graph::CollectiveKind::all_gather, sent, ports);
    Lanes lanes;
    const plan::Axis back = plan::backward_gather_axis(plan_, hop->axis);
    if (plan_.quantized_gather) {
      const int passes = plan_.reshard_after_forward ? 2 : 1;
      lanes.kernels_always = kernel((whole + sent) / ranks(hop->axis)) +
                             kernel(whole + sent) * passes +
                             (passes > 1 ? kernel((whole + sent) / ranks(back)) : Time(0));
    }
    if (back != hop->axis) {
      lanes.kernels_always += kernel(2 * whole / plan_.secondary_shard);
      PortTimes near{};
      const Time again = price(back, graph::CollectiveKind::all_gather, sent, near);
      lanes.always = time + again;
      lanes.apart = std::min(time, again);
      lanes.always_ports = ports;
      add_ports(lanes.always_ports, near);
      return lanes;
    }
    if (plan_.zero < 3 || !plan_.reshard_after_forward) {
      lanes.once = time;
      lanes.once_ports = ports;
    } else {
      lanes.always = 2 * time;
      add_ports(lanes.always_ports, ports, 2);
    }
    return lanes;
  }

  /// The end of a round, for `own` parameters of a worker on a rank.
  void add_round(std::int64_t own, StageState& state) {
    const plan::OuterBytes bytes = plan::outer_bytes(plan_);
    const std::int64_t shards = plan_.shard_outer ? plan::workers(plan_) : 1;
    for (const Bytes read_or_written :
         {bytes.pack * own, bytes.gap * own, bytes.update * (own / shards), bytes.apply * own}) {
      state.outer += kernel(read_or_written, graph::OperatorKind::optimizer);
    }
    const auto kind = plan_.shard_outer ? graph::CollectiveKind::reduce_scatter
                                        : graph::CollectiveKind::all_reduce;
    PortTimes ports{};
    state.averaged = plan_.data_parallel_update == plan::DataParallelUpdate::co2
                         ? price_beside(kind, bytes.sent * own)
                         : price(plan::Axis::outer, kind, bytes.sent * own, ports);
    if (plan_.shard_outer) {
      state.shared_outer =
          price(plan::Axis::outer, graph::CollectiveKind::all_gather, bytes.sent * own, ports);
    }
  }

  /// The price of an average that runs beside steps.
  Time price_beside(graph::CollectiveKind kind, Bytes bytes) {
    Communicator& where = placement_.communicator(graph::GroupIndex(plan::Axis::outer));
    CollectiveTime time;
    time.phases = collective::plan_collective(
        kind, bytes, where.extents,
        plan::algorithms_of(plan_)[graph::GroupIndex(plan::Axis::outer)],
        machine::beside_steps(machine_));
    time.alone = collective::total_time(time.phases);
    return sharing_ == Sharing::together ? time_together(time, where, placement_) : time.alone;
  }

  std::int64_t ranks(plan::Axis axis) { return plan::layout_of(plan_).size(axis); }

  /// A kernel that memory alone limits.
  Time kernel(Bytes bytes, graph::OperatorKind kind = graph::Operator().kind) {
    return bytes > Bytes(0) ? prices_
                                  .kernel({.name = {},
                                           .kind = kind,
                                           .type = graph::DataType::fp32,
                                           .gemm = {},
                                           .bytes = bytes},
                                          machine_)
                                  .alone
                            : Time(0);
  }

  /// The price of one buffer: no faster in pieces.
  Time price(plan::Axis axis, graph::CollectiveKind kind, Bytes bytes, PortTimes& ports) {
    const graph::GroupIndex group(axis);
    const CollectiveTime* time =
        price_of({kind, group, bytes}, plan::algorithms_of(plan_), placement_, prices_);
    if (time == nullptr) {
      return Time(0);
    }
    add_ports(ports, time->on_ports);
    return sharing_ == Sharing::together
               ? time_together(*time, placement_.communicator(group), placement_)
               : time->alone;
  }

  const zoo::Model& model_;
  const plan::Plan& plan_;
  const footprint::BlockMemories& memories_;
  Placement& placement_;
  const machine::Machine& machine_;
  Prices& prices_;
  Sharing sharing_;
  std::vector<KindState> kinds_;
};

}  // namespace

std::vector<StageState> state_costs(const zoo::Model& model, const plan::Plan& plan,
                                    const footprint::BlockMemories& memories,
                                    const StageParts& parts, const StatePrices& prices) {
  std::vector<StageState> states(parts.size());
  if (plan.offload_params != plan::Offload::none || plan.lora_rank > 0) {
    return states;
  }
  StateCosts costs(model, plan, memories, prices.placement, prices.prices, prices.sharing);
  std::map<BlockCounts, StageState> known;
  for (std::size_t s = 0; s < parts.size(); ++s) {
    BlockCounts counts = costs.counts(parts[s]);
    auto same = known.find(counts);
    if (same == known.end()) {
      const StageState state = costs.of(counts);
      same = known.emplace(std::move(counts), state).first;
    }
    states[s] = same->second;
  }
  return states;
}

Bytes mean_states(const zoo::Model& model, const plan::Plan& plan,
                  const footprint::BlockMemories& memories, const StageParts& parts) {
  Bytes sum{0};
  for (const std::vector<plan::ModelPart>& stage : parts) {
    footprint::OwnedParameters owned;
    for (const plan::ModelPart& part : stage) {
      for (const plan::BlockKind kind : plan::blocks_of(model, plan, part)) {
        owned += footprint::owned_parameters(memories, plan, kind);
      }
    }
    sum += footprint::state_memory(plan, owned, Bytes(0)).device.total();
  }
  return sum * (1 / static_cast<double>(parts.size()));
}

}  // namespace orrery::estimate
