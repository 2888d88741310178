// SPDX-License-Identifier: Apache-2.0
#include "estimate/meanwhile.h"

#include <algorithm>

namespace orrery::estimate {
namespace {

using LaneTimes = std::array<Time, kMostLanes>;

LaneTimes lanes_of(const TimedTemplate& nodes) {
  LaneTimes times{};
  for (const TimedNode& node : nodes.nodes) {
    times[node.lane] += node.work;
  }
  return times;
}

/// Of the first stage, over the step and over what only its last instances do.
struct Totals {
  LaneTimes step{};
  LaneTimes end{};
};

Totals totals_of(const PreparedPlan& plan) {
  std::vector<std::int64_t> times(plan.timed.templates.size(), 0);
  const std::int64_t length = std::ssize(plan.lists.templates.front());
  for (std::int64_t i = 0; i < length; ++i) {
    ++times[static_cast<std::size_t>(plan.template_of(0, i))];
  }
  Totals totals;
  for (std::size_t t = 0; t < times.size(); ++t) {
    if (times[t] > 0) {
      const LaneTimes one = lanes_of(plan.timed.templates[t]);
      for (std::size_t lane = 0; lane < one.size(); ++lane) {
        totals.step[lane] += one[lane] * times[t];
        totals.end[lane] += times[t] == 1 ? one[lane] : Time(0);
      }
    }
  }
  return totals;
}

/// Mean part of `transfers` that those of the other stages meet.
double met_at_the_end(const ReplayResult& run, Time transfers) {
  double met = 0;
  for (std::size_t s = 1; s < run.stages.size(); ++s) {
    const Time first = run.stages.front().end;
    const Time other = run.stages[s].end;
    const double apart = std::max(first - other, other - first) / transfers;
    met += std::max(0.0, 1 - apart);
  }
  return run.stages.size() > 1 ? met / static_cast<double>(run.stages.size() - 1) : 0;
}

}  // namespace

Meanwhile meanwhile_of(const PreparedPlan& plan, const ReplayResult& run) {
  const Totals totals = totals_of(plan);
  Meanwhile meanwhile{};
  for (std::size_t lane = 1; lane < meanwhile.size(); ++lane) {
    const Time all = totals.step[lane];
    if (all > Time(0)) {
      const double at_end = totals.end[lane] / all;
      const double passes = std::min(1.0, (all - totals.end[lane]) / run.step_time);
      meanwhile[lane] =
          at_end * (at_end > 0 ? met_at_the_end(run, totals.end[lane]) : 0) + (1 - at_end) * passes;
    }
  }
  return meanwhile;
}

}  // namespace orrery::estimate
