// SPDX-License-Identifier: Apache-2.0
#include "simulate/simulate.h"

#include <fmt/format.h>

#include <algorithm>

#include "machine/network/analytical.h"
#include "machine/topology/topology.h"
#include "simulate/bind.h"
#include "simulate/fold.h"
#include "simulate/loop.h"

namespace orrery {
namespace {

constexpr std::size_t kNamedWaits = 8;  // how many waiting nodes a deadlock message lists

Error deadlock(const std::vector<std::string>& waiting) {
  Error error(fmt::format("deadlock: {} nodes wait for ever, among them:", waiting.size()));
  for (std::size_t i = 0; i < std::min(kNamedWaits, waiting.size()); ++i) {
    error.add({{}, {}, {}, waiting[i]});
  }
  return error;
}

/// Time after a rank's end counts as bubble, so that every breakdown sums to the step time.
void close_breakdowns(Timeline& timeline) {
  for (std::size_t i = 0; i < timeline.ranks.size(); ++i) {
    timeline.by_rank[i].time[static_cast<std::size_t>(TimeCategory::bubble)] +=
        timeline.step_time - timeline.finish[i];
  }
}

}  // namespace

Result<Timeline> simulate(const Workload& workload, const Machine& machine,
                          const SimulateOptions& options) {
  Topology topology(machine.network);
  if (topology.devices() != workload.layout.ranks()) {
    return fail(fmt::format("the plan needs {} devices, the machine has {}",
                            workload.layout.ranks(), topology.devices()));
  }
  const BoundWorkload bound = bind(workload, machine, options.algorithms);
  Fold fold = fold_ranks(workload, machine, bound, options.fold);
  Loop<AnalyticalNetwork> loop(workload, bound, std::move(topology), fold.ranks);
  if (options.record_spans) {
    loop.record_spans();
  }
  loop.on_progress(options.progress);
  loop.run();
  if (const auto waiting = loop.unfinished(); !waiting.empty()) {
    return fail(deadlock(waiting));
  }

  Timeline timeline;
  timeline.ranks = std::move(fold.ranks);
  timeline.fold = std::move(fold.report);
  timeline.events = loop.events();
  timeline.spans = loop.take_spans();
  std::size_t critical = 0;
  for (std::size_t i = 0; i < timeline.ranks.size(); ++i) {
    timeline.finish.push_back(loop.finish(i));
    timeline.by_rank.push_back(loop.breakdown(i));
    critical = timeline.finish[i] > timeline.finish[critical] ? i : critical;
  }
  timeline.step_time = timeline.finish[critical];
  if (timeline.step_time.is_overflow()) {
    return fail("the step takes longer than 106 days, beyond the range of simulated time");
  }
  close_breakdowns(timeline);
  timeline.critical_rank = timeline.ranks[critical];
  timeline.breakdown = timeline.by_rank[critical];
  return timeline;
}

}  // namespace orrery
