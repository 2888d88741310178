// SPDX-License-Identifier: Apache-2.0
// The issue lists of a lowered step: what comes when, and their steady parts.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "cases.h"
#include "graph/workload.h"
#include "workload/plan/schedule.h"

namespace orrery::parallel {
namespace {

using cases::each_node;
using cases::lowered;
using cases::small_gpt;

/// A valid plan of more microbatches than any_case()'s.
cases::Case any_long_case() {
  cases::Case c = *cases::any_case();
  c.plan.global_batch *= *rc::gen::inRange<std::int64_t>(1, 9);
  return c;
}

RC_GTEST_PROP(LowerPeriod, EveryStageFollowsItsScheduleAndThenEndsTheStep, ()) {
  const cases::Case c = any_long_case();
  const graph::Workload workload = lowered(c.model, c.plan);
  const graph::IssueList& list = *workload.source->list();
  for (int role = 0; role < static_cast<int>(workload.roles.size()); ++role) {
    const plan::StageSchedule schedule(plan::pipeline_shape(c.plan), role);
    RC_ASSERT(list.length(role) == schedule.size() + 1);
    for (std::int64_t i = 0; i < schedule.size(); ++i) {
      RC_ASSERT(list.at(role, i).chunk == schedule[i].chunk);
      RC_ASSERT(list.at(role, i).microbatch == schedule[i].microbatch);
    }
    RC_ASSERT(workload.shape(role, list.at(role, schedule.size())).name == "end of step");
  }
}

RC_GTEST_PROP(LowerPeriod, AfterAPeriodTheSameTemplatesComeBackForLaterMicrobatches, ()) {
  const cases::Case c = any_long_case();
  const graph::Workload workload = lowered(c.model, c.plan);
  const graph::IssueList& list = *workload.source->list();
  for (int role = 0; role < static_cast<int>(workload.roles.size()); ++role) {
    const std::optional<graph::Period> period = list.period(role);
    if (!period) {
      continue;
    }
    RC_ASSERT(period->first >= 0 && period->end < list.length(role));
    RC_ASSERT(period->end - period->first >= 2 * period->length);
    for (std::int64_t i = period->first; i + period->length < period->end; ++i) {
      graph::Instance later = list.at(role, i + period->length);
      later.microbatch -= period->microbatches;
      RC_ASSERT(later == list.at(role, i));
    }
  }
}

/// Parameters are gathered in the first forward, gradients reduced in the last backward.
plan::Plan overlapped(plan::Schedule schedule, std::int64_t microbatches) {
  const bool one = schedule == plan::Schedule::gpipe || schedule == plan::Schedule::one_f_one_b;
  const bool chunks = schedule != plan::Schedule::zb_h1 && schedule != plan::Schedule::dualpipe;
  plan::Plan plan{
      .pp = one ? 1 : 2, .dp = 2, .schedule = schedule, .chunks = !one && chunks ? 2 : 1};
  plan.global_batch = plan.dp * microbatches;
  plan.zero = 1;
  plan.overlap_grad_reduce = plan.overlap_param_gather = true;
  return plan;
}

TEST(LowerPeriod, TemplatesOfTheFirstAndTheLastMicrobatchAreOutside) {
  for (const Named<plan::Schedule>& schedule : kNames<plan::Schedule>) {
    SCOPED_TRACE(schedule.name);
    const graph::Workload workload = lowered(small_gpt(4), overlapped(schedule.value, 64));
    const graph::IssueList& list = *workload.source->list();
    for (int role = 0; role < static_cast<int>(workload.roles.size()); ++role) {
      const std::optional<graph::Period> period = list.period(role);
      ASSERT_TRUE(period);
      int special = 0;
      for (std::int64_t i = 0; i < list.length(role); ++i) {
        const std::string& name = workload.shape(role, list.at(role, i)).name;
        const bool here = name.starts_with("first ") || name.starts_with("last ");
        EXPECT_FALSE(here && i >= period->first && i < period->end) << i << " " << name;
        special += here ? 1 : 0;
      }
      EXPECT_GE(special, 2);
    }
  }
}

TEST(LowerPeriod, MoreMicrobatchesAreMorePeriods) {
  // 1F1B of one stage: 100 pairs, the first and the last of other templates, the end of the step.
  const auto period = [](std::int64_t microbatches) {
    const graph::Workload workload =
        lowered(small_gpt(2), overlapped(plan::Schedule::one_f_one_b, microbatches));
    return workload.source->list()->period(0);
  };
  EXPECT_EQ(period(100), (graph::Period{.first = 2, .end = 198, .length = 2, .microbatches = 1}));
  EXPECT_EQ(period(1'000'000),
            (graph::Period{.first = 2, .end = 1'999'998, .length = 2, .microbatches = 1}));
  EXPECT_EQ(period(2), std::nullopt);
}

RC_GTEST_PROP(LowerPeriod, ExcerptsCountTheWholeStep, ()) {
  const cases::Case c = any_long_case();
  const graph::Workload workload = lowered(c.model, c.plan);
  graph::WorkloadStatistics counted;
  for (int role = 0; role < static_cast<int>(workload.roles.size()); ++role) {
    counted.instances += workload.source->list()->length(role);
    each_node(workload, role, [&](const graph::Node& node) {
      ++counted.nodes;
      for (const graph::Operator& op : node.operators) {
        counted.flops += op.flops;
      }
    });
  }
  const graph::WorkloadStatistics all = graph::statistics(workload);
  RC_ASSERT(all.instances == counted.instances);
  RC_ASSERT(all.nodes == counted.nodes);
  RC_ASSERT(std::abs(all.flops.value() - counted.flops.value()) <= 1e-9 * counted.flops.value());
}

}  // namespace
}  // namespace orrery::parallel
