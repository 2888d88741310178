// SPDX-License-Identifier: Apache-2.0
// Where limits end a search: of bounds, in spaces of more groups than can be looked at.
#include <gtest/gtest.h>

#include "../task.h"
#include "planner/full/search.h"
#include "study/run.h"

namespace orrery::full {
namespace {

using testing::task;

Options few_bounds(std::size_t bounds) {
  Options options;
  options.top = 1;
  options.most_estimates = 50;
  options.most_simulations = 8;
  options.most_bounds = bounds;
  return options;
}

std::uint64_t sum_of(const Counts& counts) {
  return counts.by_bound + counts.by_memory + counts.by_family + counts.invalid + counts.estimated +
         counts.left;
}

/// A mixture of experts on 16 devices: more groups than a hundredth of the bounds, so the warm
/// start has a plan of every way to cut the model before the first group is split, and few bounds
/// still answer with a plan that runs. Without the warm start, which exhaustive searches do
/// without, as few bounds find none. `bound` holds for plans that were never looked at.
TEST(SearchLimits, FewBoundsStillAnswerInASpaceOfManyGroups) {
  const Task experts = task("mixtral-8x7b", "l40s", 16, 64, 4096);
  const auto space = Space::of(experts);
  ASSERT_TRUE(space);
  const auto few = search(experts, few_bounds(500));
  ASSERT_TRUE(few) << few.error().to_string();
  ASSERT_FALSE(few->top.empty());
  EXPECT_FALSE(few->complete);
  EXPECT_FALSE(few->proved);
  EXPECT_GT(few->counts.left, 0U);
  EXPECT_EQ(sum_of(few->counts), few->counts.all);
  const Found& best = few->top.front();
  const auto run = study::run_step(experts.model, experts.machine, best.plan, 0, {});
  ASSERT_TRUE(run) << run.error().to_string();
  EXPECT_EQ(run->timeline.step_time, best.step_time);
  EXPECT_LE(few->bound, best.step_time);
  Options blind = few_bounds(500);
  blind.exhaustive = true;
  const auto none = search(experts, blind);
  ASSERT_TRUE(none);
  EXPECT_TRUE(none->top.empty());
  const auto more = search(experts, few_bounds(2000));
  ASSERT_TRUE(more && !more->top.empty());
  EXPECT_LE(few->bound, more->top.front().step_time);
}

/// Parameters, gradients and states of 47e9 parameters are 18 bytes each, 53 GB on each of 16
/// devices of 48: every plan has its states on the host. Groups that were never opened are bounded
/// by that, too: gradients out (4 bytes), read and written there beside master (4) and moments (8),
/// 32 bytes a parameter at 25.6 GB/s, 3.6 s behind the last backward, and before it the model's
/// FLOPs.
TEST(SearchLimits, WhereStatesMustBeOnTheHostTheirCopiesAreInEveryBound) {
  const Task experts = task("mixtral-8x7b", "l40s", 16, 64, 4096);
  const auto few = search(experts, few_bounds(500));
  ASSERT_TRUE(few && !few->top.empty());
  const auto parameters = static_cast<double>(zoo::count_parameters(experts.model).total);
  const double copies = 32 * parameters / 16 / 25.6e9;
  const compute::Device& device = experts.machine.device;
  const plan::Plan& best = few->top.front().plan;
  const Time kernels = zoo::model_flops_per_sequence(experts.model, 4096) * (64.0 / 16) /
                       device.peak[static_cast<std::size_t>(best.compute_type)];
  EXPECT_GT(copies, 3.6);
  EXPECT_GT(few->bound, kernels + from_seconds(copies));
  Task plain = experts;
  plain.only = {{"offload_optimizer", {"none"}}};
  const auto none = search(plain, few_bounds(500));
  ASSERT_TRUE(none);
  EXPECT_TRUE(none->top.empty());
}

/// Exhaustive searches go by bounds alone: there is no warm start, so what is found within so few
/// bounds is nothing or was found by its bound. With all bounds both agree that nothing is faster.
TEST(SearchLimits, BoundsAreCountedAlsoWithoutAWarmStart) {
  const Task small = task("gpt2", "dgx-h100", 8, 64, 1024);
  const auto cut = search(small, few_bounds(1));
  ASSERT_TRUE(cut) << cut.error().to_string();
  EXPECT_FALSE(cut->complete);
  const auto whole = search(small, few_bounds(kMostBounds));
  ASSERT_TRUE(whole && !whole->top.empty());
  if (!cut->top.empty()) {
    EXPECT_LE(whole->top.front().step_time, cut->top.front().step_time);
    EXPECT_LE(cut->bound, whole->top.front().step_time);
  }
}

/// In a space of many groups plans are simulated before all groups have their bounds, so who ends
/// the search early has a plan, and no bound is claimed: it would be of the groups seen alone.
TEST(SearchLimits, WhoStopsEarlyHasAPlanBeforeAllPlansHaveBounds) {
  const Task experts = task("mixtral-8x7b", "dgx-h100", 8, 16, 4096);
  int all = 0;
  Options options = few_bounds(500);
  options.go_on = [&] { return ++all > 0; };
  const auto whole = search(experts, options);
  ASSERT_TRUE(whole && !whole->top.empty());
  EXPECT_TRUE(whole->gap());
  int without_bound = 0;
  for (int tenths = 1; tenths < 10; ++tenths) {
    int asked = 0;
    options.go_on = [&] { return ++asked < all * tenths / 10; };
    const auto stopped = search(experts, options);
    ASSERT_TRUE(stopped);
    EXPECT_TRUE(stopped->stopped);
    EXPECT_FALSE(stopped->complete);
    EXPECT_LE(stopped->bound, whole->top.front().step_time);
    without_bound += !stopped->top.empty() && !stopped->gap() ? 1 : 0;
  }
  EXPECT_GT(without_bound, 0);
}

}  // namespace
}  // namespace orrery::full
