// SPDX-License-Identifier: Apache-2.0
// Templates timed from steps are those of the lowered workload, kernel for kernel.
#include "workload/parallel/outline.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "estimate/issue_lists.h"
#include "estimate/pass_map.h"
#include "estimate/template_tables.h"
#include "estimate/timed_workload.h"
#include "random_plans.h"
#include "workload/parallel/lower.h"
#include "workload/plan/layout.h"

namespace orrery::estimate {
namespace {

/// A node whose transfer is told by its phases, since tables number them as they come.
bool same_node(TimedNode a, const Transfers& of_a, TimedNode b, const Transfers& of_b) {
  constexpr double kRounding = 1e-9;  // slowdowns of joined kernels are means of means
  const bool same_transfer =
      a.transfer < 0 ? b.transfer < 0
                     : b.transfer >= 0 && of_a[index_of(a.transfer)] == of_b[index_of(b.transfer)];
  const bool same_slowdowns = std::abs(a.beside_message - b.beside_message) < kRounding &&
                              std::abs(a.beside_collective - b.beside_collective) < kRounding;
  a.transfer = b.transfer = -1;
  a.beside_message = b.beside_message = a.beside_collective = b.beside_collective = 1;
  return same_transfer && same_slowdowns && a == b;
}

bool same_template(const TimedWorkload& a, int of_a, const TimedWorkload& b, int of_b) {
  const TimedTemplate& one = a.templates[index_of(of_a)]->nodes;
  const TimedTemplate& other = b.templates[index_of(of_b)]->nodes;
  return one.before == other.before &&
         std::equal(one.nodes.begin(), one.nodes.end(), other.nodes.begin(), other.nodes.end(),
                    [&](const TimedNode& x, const TimedNode& y) {
                      return same_node(x, *a.transfers, y, *b.transfers);
                    });
}

TEST(Outline, IsTimedAsTheLoweredWorkload) {
  std::vector<std::string> machines = testing::kSwitchedMachines;
  machines.insert(machines.end(), testing::kTorusMachines.begin(), testing::kTorusMachines.end());
  testing::RandomPlans plans({.seed = 11, .machines = machines});
  TemplateTables tables;  // of all models and machines: nothing but steps tells templates apart
  for (int i = 0; i < 60; ++i) {
    const auto drawn = plans.next();
    const plan::Plan& plan = drawn.plan.plan;
    const auto told = drawn.plan.name + "\n" + plan::to_yaml(plan);
    const auto workload = parallel::lower(drawn.plan.model, plan);
    const auto outline = parallel::outline(drawn.plan.model, plan);
    ASSERT_TRUE(workload && outline) << told;
    Placement placement(plan::layout_of(plan, drawn.plan.model.experts > 0), drawn.machine);
    const collective::AlgorithmChoice algorithms = plan::algorithms_of(plan);
    Prices prices;
    const Timing timing{.placement = placement, .algorithms = algorithms, .prices = prices};
    const TimedWorkload expected = time_workload(*workload, timing);
    const TimedWorkload timed = time_outline(*outline, timing, tables);
    ASSERT_EQ(timed.roles.size(), expected.roles.size()) << told;
    EXPECT_EQ(timed.crosses, expected.crosses) << told;
    for (std::size_t stage = 0; stage < timed.roles.size(); ++stage) {
      ASSERT_EQ(timed.roles[stage].size(), expected.roles[stage].size()) << told;
      for (std::size_t t = 0; t < timed.roles[stage].size(); ++t) {
        EXPECT_TRUE(same_template(timed, timed.roles[stage][t], expected, expected.roles[stage][t]))
            << told << "stage " << stage << ", template " << t;
      }
    }
    const std::size_t stages = timed.roles.size();
    EXPECT_EQ(issue_lists(*outline->lists.source, stages).templates,
              issue_lists(*workload->source->list(), stages).templates)
        << told;
  }
}

TEST(Outline, EqualTemplatesOfDifferentPlansAreMadeOnce) {
  // Plans that differ in the global batch alone, and in ZeRO's stage before the end of the step.
  const zoo::Model model = *zoo::load_model("gpt-7.5b");
  const auto machine = machine::with_devices(*machine::load_machine("dgx-a100-80g"), 16);
  plan::Plan plan{.tp = 2, .pp = 4, .dp = 2, .global_batch = 32};
  TemplateTables tables;
  Prices prices;
  std::vector<TimedWorkload> timed;
  for (const std::int64_t zero : {0, 1}) {
    plan.zero = zero;
    const auto outline = parallel::outline(model, plan);
    ASSERT_TRUE(outline && machine);
    Placement placement(plan::layout_of(plan), *machine);
    const collective::AlgorithmChoice algorithms = plan::algorithms_of(plan);
    timed.push_back(time_outline(
        *outline, {.placement = placement, .algorithms = algorithms, .prices = prices}, tables));
  }
  // Of a middle stage: forward, backward, end of the step.
  const auto of = [&](std::size_t number, std::size_t t) {
    return timed[number].templates[index_of(timed[number].roles[1][t])];
  };
  ASSERT_EQ(timed[0].roles[1].size(), 3U);
  EXPECT_EQ(of(0, 0), of(1, 0));
  EXPECT_EQ(of(0, 1), of(1, 1));
  EXPECT_NE(of(0, 2), of(1, 2));
}

}  // namespace
}  // namespace orrery::estimate
