// SPDX-License-Identifier: Apache-2.0
#include "workload/parallel/proportion.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "base/lists.h"
#include "machine/compute/compute_model.h"
#include "machine/device_groups.h"
#include "workload/parallel/block_workload.h"
#include "workload/plan/layout.h"
#include "workload/plan/model_parts.h"
#include "workload/plan/schedule_row.h"
#include "workload/plan/shares.h"

namespace orrery::parallel {
namespace {

std::vector<PartTimes> times_by_part(const plan::Plan& plan, const zoo::Model& model,
                                     const machine::Machine& machine) {
  plan::Plan one =
      plan::with_microbatches(plan, row_of(plan.schedule).both_ends ? 2 * plan.pp : plan.pp);
  const std::vector<BlockWork> work = block_work(model, one);
  std::vector<PartTimes> times;
  for (const machine::Machine& part : machine::by_device_group(machine)) {
    std::vector<Time> by_kind;
    for (const BlockWork& block : work) {
      by_kind.emplace_back(0);
      for (const graph::Operator& kernel : block.kernels) {
        by_kind.back() += compute::kernel_time(kernel, part.device).alone;
      }
    }
    Time layers{0};
    for (std::int64_t layer = 0; layer < model.layers; ++layer) {
      layers += by_kind[plan::layer_block(model, plan, layer)];
    }
    times.push_back({by_kind[plan::kEmbeddingBlock], by_kind[plan::kHeadBlock],
                     layers / std::max<std::int64_t>(1, model.layers)});
  }
  return times;
}

/// Returns which part of the machine is slowest among those that a stage runs on.
std::size_t slower(std::size_t a, std::size_t b, const std::vector<PartTimes>& times) {
  return times[b].layer > times[a].layer ? b : a;
}

/// Layers of every part of the model, each given to the stage that is done first with it.
std::string layers_in_proportion(const plan::Plan& plan, const zoo::Model& model,
                                 const std::vector<std::size_t>& part_of_stage,
                                 const std::vector<PartTimes>& times) {
  const plan::PipelineShape shape{plan.schedule, plan.pp, plan::chunks_of(plan), 1};
  const auto parts = static_cast<std::size_t>(plan::part_count(shape));
  std::vector<std::vector<std::size_t>> stages(parts);  // that hold a part of the model
  for (std::int64_t stage = 0; stage < shape.stages; ++stage) {
    for (std::int64_t chunk = 0; chunk < shape.chunks; ++chunk) {
      stages[static_cast<std::size_t>(plan::part_of(shape, stage, chunk))].push_back(
          static_cast<std::size_t>(stage));
    }
  }
  std::vector<Time> busy(part_of_stage.size());
  std::vector<std::int64_t> layers(parts, 0);
  const auto add = [&](std::size_t part, Time PartTimes::*work) {
    for (const std::size_t stage : stages[part]) {
      busy[stage] += times[part_of_stage[stage]].*work;
    }
  };
  const auto after = [&](std::size_t part) {  // its slowest stage, with one more layer
    Time most{0};
    for (const std::size_t stage : stages[part]) {
      most = std::max(most, busy[stage] + times[part_of_stage[stage]].layer);
    }
    return std::pair(most, layers[part]);
  };
  add(0, &PartTimes::embedding);
  add(parts - 1, &PartTimes::head);
  std::int64_t left = model.layers;
  for (std::size_t part = 0; part < parts; ++part) {
    const bool end = parts > 1 && (part == 0 || part + 1 == parts);
    if (!end && left > 0) {
      ++layers[part];
      --left;
      add(part, &PartTimes::layer);
    }
  }
  for (; left > 0; --left) {
    std::size_t next = 0;
    for (std::size_t part = 1; part < parts; ++part) {
      next = after(part) < after(next) ? part : next;
    }
    ++layers[next];
    add(next, &PartTimes::layer);
  }
  return joined(layers, ",");
}

/// Replicas that compute equally long for a microbatch.
struct ReplicaSort {
  Time microbatch{0};
  std::vector<std::size_t> replicas;
};

/// Every sort's number for the least time of the slowest, where all of a sort get as many; empty:
/// the batch does not allow it. Of one or two sorts.
std::vector<std::int64_t> alike_shares(const std::vector<ReplicaSort>& sorts, std::int64_t all,
                                       std::int64_t unit) {
  std::vector<std::int64_t> best;
  Time least = Time::max();
  const std::int64_t first = std::ssize(sorts.front().replicas);
  const std::int64_t second = sorts.size() > 1 ? std::ssize(sorts[1].replicas) : 0;
  for (std::int64_t one = unit; first * one <= all; one += unit) {
    const std::int64_t rest = all - first * one;
    const bool even = second == 0 ? rest == 0 : rest > 0 && rest % (second * unit) == 0;
    if (!even) {
      continue;
    }
    const std::int64_t other = second == 0 ? 0 : rest / second;
    const Time slowest = std::max(sorts.front().microbatch * one,
                                  second == 0 ? Time(0) : sorts[1].microbatch * other);
    if (slowest < least) {
      least = slowest;
      best = second == 0 ? std::vector{one} : std::vector{one, other};
    }
  }
  return best;
}

std::vector<std::int64_t> shares_of(const std::vector<ReplicaSort>& sorts, std::int64_t replicas,
                                    std::int64_t all, std::int64_t unit) {
  std::vector<std::int64_t> shares(static_cast<std::size_t>(replicas), unit);
  if (const auto alike =
          sorts.size() <= 2 ? alike_shares(sorts, all, unit) : std::vector<std::int64_t>();
      !alike.empty()) {
    for (std::size_t sort = 0; sort < sorts.size(); ++sort) {
      for (const std::size_t replica : sorts[sort].replicas) {
        shares[replica] = alike[sort];
      }
    }
    return shares;
  }
  std::vector<Time> microbatch(shares.size());
  for (const ReplicaSort& sort : sorts) {
    for (const std::size_t replica : sort.replicas) {
      microbatch[replica] = sort.microbatch;
    }
  }
  for (std::int64_t left = all - replicas * unit; left >= unit; left -= unit) {
    std::size_t next = 0;
    for (std::size_t i = 1; i < shares.size(); ++i) {
      const auto after = [&](std::size_t r) { return microbatch[r] * (shares[r] + unit); };
      next = after(i) < after(next) ? i : next;
    }
    shares[next] += unit;
  }
  return shares;
}

/// Returns what a replica's slowest stage takes for a microbatch, for all replicas that take as
/// long.
std::vector<ReplicaSort> sorts_of(const plan::Plan& plan, const zoo::Model& model,
                                  const machine::Machine& machine,
                                  const std::vector<PartTimes>& times) {
  std::vector<Time> slowest(static_cast<std::size_t>(plan.dp), Time(0));
  const plan::RankLayout layout = plan::layout_of(plan);
  const graph::Digit replicas = plan::replica_digit(layout);
  const auto layers = plan::split_model(model, plan);
  for (std::int64_t rank = 0; layers && rank < plan.devices(); ++rank) {
    const auto stage =
        static_cast<std::size_t>(plan.pp > 1 ? layout.coordinate(rank, plan::Axis::pp) : 0);
    const PartTimes& own = times[machine::device_group_of(machine, rank)];
    Time busy{0};
    for (const plan::ModelPart& part : (*layers)[stage]) {
      busy += own.layer * part.layers + (part.embedding ? own.embedding : Time(0)) +
              (part.head ? own.head : Time(0));
    }
    Time& all = slowest[static_cast<std::size_t>(replicas.of(rank))];
    all = std::max(all, busy);
  }
  std::map<Time, ReplicaSort> sorts;
  for (std::size_t replica = 0; replica < slowest.size(); ++replica) {
    sorts[slowest[replica]].microbatch = slowest[replica];
    sorts[slowest[replica]].replicas.push_back(replica);
  }
  std::vector<ReplicaSort> result;
  result.reserve(sorts.size());
  for (auto& [time, sort] : sorts) {
    result.push_back(std::move(sort));
  }
  return result;
}

/// Microbatches that a replica takes at once.
std::int64_t unit_of(const plan::Plan& plan) {
  return row_of(plan.schedule).unit(plan.pp);
}

/// Degrees that check() would refuse, whatever the numbers are.
bool is_sane(const plan::Plan& plan, const zoo::Model& model) {
  plan::Plan one = plan::with_microbatches(plan, 2 * plan.pp);
  return std::min({plan.tp, plan.cp, plan.pp, plan.dp, plan.microbatch, plan.chunks}) >= 1 &&
         plan.pp <= model.layers + 2 && plan::check(one, model).has_value();
}

}  // namespace

const std::vector<PartTimes>& Proportion::times(const plan::Plan& plan,
                                                const machine::Machine& fitted) {
  const auto [known, fresh] = times_.try_emplace({plan.tp, plan.cp, plan.ep, plan.etp,
                                                  plan.microbatch, plan.sequence_parallel ? 1 : 0,
                                                  static_cast<std::int64_t>(plan.cp_exchange)});
  if (fresh) {
    known->second = times_by_part(plan, model_, fitted);
  }
  return known->second;
}

plan::Plan Proportion::of(plan::Plan plan) {
  const bool layers = plan.stage_layers == "auto";
  const bool shares = plan.batch_shares == "auto";
  if (!layers && !shares) {
    return plan;
  }
  const bool mixed = !machine_.parts.empty() && is_sane(plan, model_);
  const auto own = mixed ? machine::with_devices(machine_, plan.devices())
                         : Result<machine::Machine>(machine::Machine());
  if (!own || own->parts.empty()) {
    plan.batch_shares = shares ? "" : plan.batch_shares;
    return plan;
  }
  const std::vector<PartTimes>& times = this->times(plan, machine_);
  if (layers) {
    const std::vector<plan::RankClass> classes =
        plan::rank_classes(plan::with_microbatches(plan, 2 * plan.pp), *own);
    std::vector<std::size_t> part_of_stage = classes.front().parts;
    for (const plan::RankClass& ranks : classes) {
      for (std::size_t stage = 0; stage < ranks.parts.size(); ++stage) {
        part_of_stage[stage] = slower(part_of_stage[stage], ranks.parts[stage], times);
      }
    }
    plan.stage_layers = layers_in_proportion(plan, model_, part_of_stage, times);
  }
  if (shares) {
    plan.batch_shares.clear();
    const std::vector<ReplicaSort> sorts = sorts_of(plan, model_, *own, times);
    const std::int64_t unit = unit_of(plan);
    const bool divides = plan.global_batch % (plan.microbatch * unit) == 0 &&
                         plan.global_batch / plan.microbatch >= unit * plan.dp;
    if (sorts.size() > 1 && divides) {
      plan.batch_shares = plan::to_batch_shares(
          shares_of(sorts, plan.dp, plan.global_batch / plan.microbatch, unit));
    }
  }
  return plan;
}

plan::Plan in_proportion(plan::Plan plan, const zoo::Model& model,
                         const machine::Machine& machine) {
  return Proportion(model, machine).of(std::move(plan));
}

}  // namespace orrery::parallel
