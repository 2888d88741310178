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
  Time copied{0};
};

StageWork work_of(const plan::Plan& plan, const PlanCosts& costs, std::size_t stage) {
  const bool hides = hides_exchanges(plan);
  StageWork work;
  const std::vector<ChunkPasses>& chunks = costs.loads[stage].chunks;
  for (std::size_t c = 0; c < chunks.size(); ++c) {
    const Time copy = least_copy(plan, costs.parts[stage][c].layers, chunks[c].kept, costs.machine);
    const Time forward = hides ? chunks[c].forward.least : std::max(chunks[c].forward.least, copy);
    const Time backward =
        hides ? chunks[c].backward.least : std::max(chunks[c].backward.least, copy);
    work.first_forward = c == 0 ? forward : work.first_forward;
    work.first_backward = c == 0 ? backward : work.first_backward;
    work.least_forward = std::min(work.least_forward, forward);
    work.back += backward;
    work.all += forward + backward;
    work.copied += copy;
  }
  return work;
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
  const bool drains = !hides_exchanges(plan) && !plan::splits_backward(plan.schedule);
  Time fill{0};
  Time drain{0};
  Time bound{0};
  std::vector<Time> fills;  // by how many stages are before
  for (std::size_t s = 0; s < costs.parts.size(); ++s) {
    const StagePasses& load = costs.loads[s];
    StageWork work = work_of(plan, costs, s);
    work.all += states[s].kernels_always;
    fills.push_back(fill);
    const Time before = both_ends ? fills[std::min(s, costs.parts.size() - 1 - s)] : fill;
    const Time own = before + std::max(work.all, work.copied) * shape.microbatches;
    const Time path = own + drain + finish;
    const Time lane = states[s].lane(shape.microbatches);
    bound = std::max({bound, lane, load.host * shape.microbatches,
                      path + load.lost_beside(lane, path, shape.microbatches)});
    if (costs.own_ports && !plan.fuse_communication) {
      const Time stored = plan.offload_activations > 0 ? load.kept() * plan.offload_activations /
                                                             machine::fastest_tier(costs.machine, 1)
                                                       : Time(0);
      bound = std::max(bound, load.on_ports(states[s], stored, shape.microbatches));
    }
    if (drains) {
      const Time beside = work.back * last_together(shape);
      const Time warmup =
          work.least_forward * (plan::warmup(shape, static_cast<std::int64_t>(s)) + 1);
      const Time reduced = states[s].reduction(shape.microbatches);
      bound = std::max(
          {bound, own - beside + states[s].reduced + finish, before + warmup + reduced + finish});
    }
    bound = std::max(bound,
                     *std::max_element(load.lanes.begin(), load.lanes.end()) * shape.microbatches);
    fill += work.first_forward;
    drain += drains ? work.first_backward : Time(0);
  }
  return bound;
}

}  // namespace orrery::estimate
