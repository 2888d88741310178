// SPDX-License-Identifier: Apache-2.0
#include "workload/parallel/training_run.h"

#include <gtest/gtest.h>

#include "cases.h"
#include "outer.h"

namespace orrery::parallel {
namespace {

graph::Workload rounds(std::int64_t steps, std::int32_t every) {
  return cases::lowered_with_outer(cases::small_gpt(2), {.dp = 2, .global_batch = 40}, steps,
                                   {.every = every, .bytes = Bytes(1'000), .update = 1_us});
}

std::int64_t templates(const graph::Workload& workload, std::string_view name) {
  const std::vector<graph::Template>& all = workload.programs.front().templates;
  return std::count_if(all.begin(), all.end(),
                       [&](const graph::Template& t) { return t.name.starts_with(name); });
}

TEST(Turn, HoldsFromItsFirstStepOn) {
  // Every third from number 5 on: 5, 8, 11.
  const Turn turn{.every = 3, .at = 5};
  std::vector<std::int64_t> held;
  for (std::int64_t step = 0; step < 12; ++step) {
    if (turn.holds(step)) {
      held.push_back(step);
    }
  }
  EXPECT_EQ(held, (std::vector<std::int64_t>{5, 8, 11}));
}

TEST(TrainingRun, HasOnlyTheTemplatesThatOccur) {
  // Ends of a step, of the first round and of a later round; forward and backward once.
  EXPECT_EQ(templates(rounds(7, 3), "end of step"), 3);
  EXPECT_EQ(templates(rounds(5, 3), "end of step"), 2);  // no second round
  EXPECT_EQ(templates(rounds(2, 3), "end of step"), 1);
  EXPECT_EQ(templates(rounds(7, 3), "end of run"), 1);
  EXPECT_EQ(templates(rounds(1, 3), "end of run"), 0);
  EXPECT_EQ(templates(rounds(7, 3), "forward"), templates(rounds(1, 3), "forward"));
}

TEST(TrainingRun, IssuesStepAfterStepAndThenItsEnd) {
  const graph::Workload one = rounds(1, 3);
  const graph::Workload run = rounds(7, 3);
  const graph::IssueList& step = *one.source->list();
  const graph::IssueList& list = *run.source->list();
  const std::int64_t n = step.length(0);
  ASSERT_EQ(list.length(0), 7 * n + 1);
  EXPECT_EQ(list.steps(), 7);
  for (std::int64_t i = 0; i + 1 < list.length(0); ++i) {
    const graph::Instance instance = list.at(0, i);
    EXPECT_EQ(instance.step, i / n);
    EXPECT_EQ(instance.microbatch, step.at(0, i % n).microbatch);
  }
  EXPECT_EQ(run.shape(0, list.at(0, 7 * n)).name, "end of run");
  EXPECT_NE(list.at(0, 3 * n - 1).template_index, list.at(0, 2 * n - 1).template_index);
  EXPECT_EQ(list.at(0, 7 * n - 1).template_index, list.at(0, n - 1).template_index);
}

TEST(TrainingRun, HasTheStepsPeriodsAndThatOfItsRounds) {
  // From the second round's end (step 5) on every three steps are alike, up to the 20th step.
  const graph::Workload one = rounds(1, 3);
  const graph::Workload run = rounds(20, 3);
  const graph::IssueList& list = *run.source->list();
  const std::int64_t n = one.source->list()->length(0);
  const graph::Period inner = one.source->list()->period(0).value();
  const auto first = list.periods(0, 0);
  ASSERT_EQ(first.size(), 2U);
  EXPECT_EQ(first[0], inner);
  EXPECT_EQ(first[1],
            (graph::Period{
                .first = 5 * n, .end = 20 * n, .length = 3 * n, .microbatches = 0, .steps = 3}));
  EXPECT_EQ(list.period(0), first[1]);
  const auto next = list.periods(0, first[0].end);
  EXPECT_EQ(next[0].first, inner.first + n);
  EXPECT_EQ(list.periods(0, 20 * n).size(), 0U);
  for (std::int64_t i = first[1].first; i + first[1].length < first[1].end; ++i) {
    graph::Instance later = list.at(0, i + first[1].length);
    later.step -= 3;
    EXPECT_EQ(later, list.at(0, i));
  }
}

}  // namespace
}  // namespace orrery::parallel
