// SPDX-License-Identifier: Apache-2.0
#include "estimate/least_step.h"

#include <algorithm>
#include <vector>

#include "workload/plan/schedule_row.h"

namespace orrery::estimate {
namespace {

/// Microbatches whose backward may come after the first reduction of the last one's gradients.
std::int64_t last_together(const plan::PipelineShape& shape) {
  return row_of(shape.schedule).by_rounds ? std::min(shape.stages, shape.microbatches) : 1;
}

/// The work that one stage does for a microbatch at the least.
struct StageWork {
  Time first_forward{0};
  Time first_backward{0};
  Time least_forward = Time::max();
  Time back{0};
  Time all{0};
  Time lone{0};  ///< of all microbatches: what passes without another beside them wait for
  std::int64_t most_lone = 0;  ///< of a chunk's passes of one direction
  std::int64_t lone_forwards = 0;
  Time copied{0};
};

/// Returns the time of copying what layers keep to the host, as far as the plan says, or back.
Time copy_of(const plan::Plan& plan, Bytes kept, const machine::Machine& machine) {
  return plan.offload_activations > 0
             ? kept * plan.offload_activations / machine::fastest_tier(machine, 1)
             : Time(0);
}

/// A Turn is a forward and the backward right after it at the least, where the chunks of a stage
/// are copied to the host: what they take beyond the passes of work_of().
///
///   forward    until all of its layers are stored: the last one's store begins when it ends
///   backward   the last layer's load, which waits for all earlier stores; then its kernels, or the
///              other layers' loads, one after the other
///
/// With the head behind the layers nothing is known of either: it runs beside these copies.
Time least_turn(const plan::Plan& plan, const PlanCosts& costs, std::size_t stage) {
  Time forward = Time::max();
  Time backward = Time::max();
  const std::vector<ChunkPasses>& chunks = costs.loads[stage].chunks;
  for (std::size_t c = 0; c < chunks.size(); ++c) {
    const ChunkPasses& chunk = chunks[c];
    if (costs.parts[stage][c].head) {
      return Time(0);
    }
    const Time all = copy_of(plan, chunk.kept, costs.machine);
    const Time last = copy_of(plan, chunk.kept_last, costs.machine);
    const Time least = least_copy(plan, costs.parts[stage][c].layers, chunk.kept, costs.machine);
    forward = std::min(
        forward, std::max(chunk.forward.least + last, all) - std::max(chunk.forward.least, least));
    backward = std::min(backward, std::max(chunk.backward.least + last, all) -
                                      std::max(chunk.backward.least, least));
  }
  return forward + backward;
}

/// Returns what a pass that is alone waits for beyond its least time: collectives, or copies.
Time waits(const PassTimes& pass, Time copy) {
  return std::max(Time(0), std::max(pass.chain, copy) - pass.least);
}

StageWork work_of(const plan::Plan& plan, const PlanCosts& costs, std::size_t stage) {
  const bool hides = hides_exchanges(plan);
  StageWork work;
  const std::vector<ChunkPasses>& chunks = costs.loads[stage].chunks;
  for (std::size_t c = 0; c < chunks.size(); ++c) {
    const Time copy = least_copy(plan, costs.parts[stage][c].layers, chunks[c].kept, costs.machine);
    const Time forward = hides ? chunks[c].forward.least : std::max(chunks[c].forward.least, copy);
    const Time backward =
        hides ? chunks[c].backward.least : std::max(chunks[c].backward.least, copy);
    if (c == 0) {  // the first and the last pass of a step, which are alone
      work.first_forward = forward + (costs.lone ? waits(chunks[c].forward, copy) : Time(0));
      work.first_backward = backward + (costs.lone ? waits(chunks[c].backward, copy) : Time(0));
    }
    if (costs.lone != nullptr) {
      const LonePasses& lone = (*costs.lone)[stage];
      work.lone += waits(chunks[c].forward, copy) * lone.forwards[c] +
                   waits(chunks[c].backward, copy) * lone.backwards[c];
      work.lone_forwards += lone.forwards[c];
      work.most_lone = std::max({work.most_lone, lone.forwards[c], lone.backwards[c]});
    }
    work.least_forward = std::min(work.least_forward, forward);
    work.back += backward;
    work.all += forward + backward;
    work.copied += copy_of(plan, chunks[c].kept, costs.machine);
  }
  return work;
}

/// Returns a bound of plans with activations on the host whose schedule has forwards and backwards
/// in turn; else 0:  max over stages of  fill + m w + turns + drain + finish.
Time least_turning(const plan::Plan& plan, const PlanCosts& costs) {
  const plan::PipelineShape shape = plan::pipeline_shape(plan);
  const plan::ScheduleRow& row = row_of(shape.schedule);
  if (plan.offload_activations <= 0 || hides_exchanges(plan) || row.warmup == nullptr) {
    return Time(0);
  }
  Time finish = Time::max();
  for (const StageState& state : costs.states) {
    finish = std::min(finish, state.finish);
  }
  Time ends{0};  // fill and drain
  Time bound{0};
  for (std::size_t s = 0; s < costs.parts.size(); ++s) {
    const StageWork work = work_of(plan, costs, s);
    const std::int64_t turns = shape.pieces() - plan::warmup(shape, static_cast<std::int64_t>(s));
    bound = std::max(
        bound, ends + work.all * shape.microbatches + least_turn(plan, costs, s) * turns + finish);
    ends += work.first_forward + work.first_backward;
  }
  return bound;
}

}  // namespace

Time least_copy(const plan::Plan& plan, std::int64_t layers, Bytes kept,
                const machine::Machine& machine) {
  if (plan.offload_activations <= 0 || layers <= 2) {
    return Time(0);
  }
  const double share = static_cast<double>(layers - 2) / static_cast<double>(layers);
  return kept * (plan.offload_activations * share) / machine::fastest_tier(machine, 1);
}

Time least_step(const plan::Plan& plan, const PlanCosts& costs) {
  const std::vector<StageState>& states = costs.states;
  Time finish = Time::max();
  for (const StageState& state : states) {
    finish = std::min(finish, state.finish);
  }
  const plan::PipelineShape shape = plan::pipeline_shape(plan);
  const bool both_ends = row_of(plan.schedule).both_ends;
  const bool drains =
      (!hides_exchanges(plan) || costs.lone != nullptr) && !plan::splits_backward(plan.schedule);
  Time fill{0};
  Time drain{0};
  Time bound{0};
  std::vector<Time> fills;  // by how many stages are before
  fills.reserve(costs.parts.size());
  for (std::size_t s = 0; s < costs.parts.size(); ++s) {
    const StagePasses& load = costs.loads[s];
    StageWork work = work_of(plan, costs, s);
    work.all += states[s].kernels_always;
    fills.push_back(fill);
    const Time before = both_ends ? fills[std::min(s, costs.parts.size() - 1 - s)] : fill;
    const Time own = before + std::max(work.all * shape.microbatches + work.lone,
                                       work.copied * shape.microbatches);
    const Time path = own + drain + finish;
    const Time lane = states[s].lane(shape.microbatches);
    const Time exchanged =
        costs.lone != nullptr ? load.exchanges * (shape.microbatches - work.most_lone) : Time(0);
    const Time beside = std::max(lane, exchanged);  // of kernels, at the least
    bound = std::max({bound, lane, load.host * shape.microbatches,
                      path + load.lost_beside(beside, path, shape.microbatches)});
    if (costs.lone != nullptr) {
      const std::int64_t pairs = shape.pieces() - work.lone_forwards;
      const Time passes = work.all * shape.microbatches + work.lone + load.pair_waits * pairs;
      bound = std::max(bound, before + passes + drain + finish);
    }
    if (costs.own_ports && !plan.fuse_communication) {
      const Time stored = copy_of(plan, load.kept(), costs.machine);
      bound = std::max(bound, load.on_ports(states[s], stored, shape.microbatches));
    }
    if (drains && costs.lone == nullptr) {
      const Time last = work.back * last_together(shape);
      const Time warmup =
          work.least_forward * (plan::warmup(shape, static_cast<std::int64_t>(s)) + 1);
      const Time reduced = states[s].reduction(shape.microbatches);
      bound = std::max(
          {bound, own - last + states[s].reduced + finish, before + warmup + reduced + finish});
    }
    bound = std::max(bound,
                     *std::max_element(load.lanes.begin(), load.lanes.end()) * shape.microbatches);
    fill += work.first_forward;
    drain += drains ? work.first_backward : Time(0);
  }
  return std::max(bound, least_turning(plan, costs));
}

}  // namespace orrery::estimate
