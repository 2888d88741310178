// SPDX-License-Identifier: Apache-2.0
#include "estimate/event_run.h"

#include <algorithm>
#include <utility>

#include "estimate/shared_links.h"
#include "estimate/stretch.h"
#include "simulate/simulate.h"
#include "workload/parallel/lower.h"
#include "workload/plan/axes.h"
#include "workload/plan/layout.h"
#include "workload/plan/schedule.h"
#include "workload/plan/shares.h"

namespace orrery::estimate {
namespace {

/// That can be run in some tenths of a second where none is another's mirror.
constexpr std::int64_t kMostRanks = 1024;

/// Of a pass: from here on maps do not tell well what messages meet.
constexpr double kLongMessages = 0.05;

/// Times that maps are above events at the most: where groups cross one another's links, and where
/// they do not.
constexpr double kMostAboveCrossing = 1.3;
constexpr double kMostAboveMeeting = 1.1;

bool has_few_ranks(const plan::Plan& plan) {
  return plan.devices() <= kMostRanks;
}

Result<simulate::Timeline> run(const zoo::Model& model, const plan::Plan& plan,
                               const machine::Machine& machine) {
  const auto workload = parallel::lower(
      model, plan, {.skip = {}, .observe = {}, .machine = &machine, .fuse_communication = false});
  if (!workload) {
    return fail(workload.error());
  }
  return simulate::simulate(
      *workload, machine, {.faults = {}, .algorithms = plan::algorithms_of(plan), .progress = {}});
}

Time computed(const simulate::Timeline& timeline, std::size_t rank) {
  Time sum{0};
  for (std::size_t row = 0; row < timeline.categories.size(); ++row) {
    sum += timeline.categories.is_phase(row) ? timeline.by_rank[rank].time[row] : Time(0);
  }
  return sum;
}

std::size_t busiest(const simulate::Timeline& timeline) {
  std::size_t most = 0;
  for (std::size_t rank = 1; rank < timeline.by_rank.size(); ++rank) {
    most = computed(timeline, rank) > computed(timeline, most) ? rank : most;
  }
  return most;
}

Estimate parts_of(const simulate::Timeline& timeline, std::size_t rank) {
  const std::vector<Time>& times = timeline.by_rank[rank].time;
  const Time tail = times[static_cast<std::size_t>(plan::StepPhase::optimizer)];
  const Time bubble = times[timeline.categories.bubble()];
  const Time compute = computed(timeline, rank) - tail;
  return {.step_time = timeline.step_time,
          .compute = compute,
          .exposed = timeline.step_time - compute - bubble - tail,
          .bubble = bubble,
          .tail = tail};
}

/// Of `shorter` and `longer`, so many times further than the second is from the first.
Estimate further(const Estimate& shorter, const Estimate& longer, double times) {
  const auto part = [&](Time Estimate::*which) {
    return longer.*which + (longer.*which - shorter.*which) * times;
  };
  Estimate far{.step_time = part(&Estimate::step_time),
               .compute = part(&Estimate::compute),
               .exposed = part(&Estimate::exposed),
               .bubble = {},
               .tail = longer.tail};
  far.bubble = far.step_time - far.compute - far.exposed - far.tail;
  return far;
}

/// Microbatches of the two runs.
struct Lengths {
  std::int64_t shorter = 0;
  std::int64_t longer = 0;
};
Lengths lengths_of(const plan::Plan& plan) {
  if (plan.schedule == plan::Schedule::interleaved) {
    return {3 * plan.pp, 7 * plan.pp};
  }
  const std::int64_t fill = 2 * plan.pp + 4;
  return {fill, fill + 12};
}

}  // namespace

bool runs_by_events(const plan::Plan& plan, const machine::Machine& machine) {
  return machine.parts.empty() && plan.batch_shares.empty();
}

bool has_lines(const machine::Machine& machine) {
  return std::any_of(machine.network.begin(), machine.network.end(), is_line);
}

double most_above_on_lines(const plan::Plan& plan, const machine::Machine& machine) {
  return has_lines(machine) && has_few_ranks(plan) ? kMostAboveCrossing : 0;
}

double most_above_events(const plan::Plan& plan, const TimedWorkload& timed) {
  if (!has_few_ranks(plan)) {
    return 0;
  }
  const double long_messages = share_of_messages(timed) > kLongMessages ? kMostAboveMeeting : 0;
  return timed.crosses ? kMostAboveCrossing : long_messages;
}

Result<Estimate> run_by_events(const zoo::Model& model, const plan::Plan& plan,
                               const machine::Machine& machine) {
  const auto [shorter, longer] = lengths_of(plan);
  const std::int64_t all = plan.microbatches();
  const auto last =
      run(model, all <= longer ? plan : plan::with_microbatches(plan, longer), machine);
  if (!last) {
    return fail(last.error());
  }
  const std::size_t rank = busiest(*last);
  const Estimate found = parts_of(*last, rank);
  if (all <= longer) {
    return found;
  }
  const auto first = run(model, plan::with_microbatches(plan, shorter), machine);
  if (!first) {
    return fail(first.error());
  }
  return further(parts_of(*first, rank), found,
                 static_cast<double>(all - longer) / static_cast<double>(longer - shorter));
}

}  // namespace orrery::estimate
