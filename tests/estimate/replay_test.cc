// SPDX-License-Identifier: Apache-2.0
// Schedules of uniform stages whose messages take no time, replayed: what the papers' formulas say.
#include "estimate/replay.h"

#include <gtest/gtest.h>

#include <memory>

#include "estimate/lower_bound.h"
#include "workload/plan/schedule.h"

namespace orrery::estimate {
namespace {

constexpr Time kForward = 10_ms;
constexpr Time kBackward = 20_ms;

/// A pass of one chunk: what it waits for, its kernels, what it sends.
TimedTemplate pass(Time work, int receives, int sends, Time message) {
  TimedTemplate nodes;
  const auto add = [&](TimedNode node, std::vector<std::uint32_t> after) {
    node.first_before = static_cast<std::uint32_t>(nodes.before.size());
    node.befores = static_cast<std::uint32_t>(after.size());
    nodes.before.insert(nodes.before.end(), after.begin(), after.end());
    nodes.nodes.push_back(node);
  };
  std::vector<std::uint32_t> arrived;
  if (receives >= 0) {
    add({.kind = TimedNode::Kind::receive, .lane = 1, .flow = static_cast<std::int8_t>(receives)},
        {});
    arrived.push_back(0);
  }
  add({.work = work, .least = work}, arrived);
  if (sends >= 0) {
    add({.kind = TimedNode::Kind::message,
         .lane = 2,
         .flow = static_cast<std::int8_t>(sends),
         .work = message,
         .least = message},
        {static_cast<std::uint32_t>(nodes.nodes.size() - 1)});
  }
  return nodes;
}

/// p stages of v chunks: forward and backward of chunk c are templates 2c and 2c + 1, the end of
/// the step, which does nothing, is the last.
struct Pipeline {
  TimedWorkload timed;
  IssueLists lists;

  PreparedPlan plan() const { return {timed, lists}; }
};

Pipeline pipeline(const plan::PipelineShape& shape, Time message = Time(0)) {
  Pipeline result;
  TimedWorkload& timed = result.timed;
  timed.message_lane = 2;
  timed.members = {static_cast<int>(shape.stages), 2};
  std::vector<std::vector<graph::Instance>> lists;
  const std::int64_t parts = plan::part_count(shape);
  for (std::int64_t s = 0; s < shape.stages; ++s) {
    std::vector<int>& role = timed.roles.emplace_back();
    const auto add = [&](TimedTemplate nodes) {
      role.push_back(static_cast<int>(timed.templates.size()));
      timed.templates.push_back(std::make_shared<MappedTemplate>());
      timed.templates.back()->nodes = std::move(nodes);
    };
    for (std::int64_t c = 0; c < shape.chunks; ++c) {
      const std::int64_t part = plan::part_of(shape, s, c);
      const bool first = part == 0;
      const bool last = part + 1 == parts;
      add(pass(kForward / shape.chunks, first ? -1 : 0, last ? -1 : 0, message));
      add(pass(kBackward / shape.chunks, last ? -1 : 1, first ? -1 : 1, message));
    }
    add({});
    timed.targets.push_back({static_cast<int>((s + 1) % shape.stages),
                             static_cast<int>((s + shape.stages - 1) % shape.stages)});
    std::vector<graph::Instance>& list = lists.emplace_back();
    const plan::StageSchedule schedule(shape, s);
    for (std::int64_t i = 0; i < schedule.size(); ++i) {
      const plan::PipelineSlot slot = schedule[i];
      list.push_back({.template_index = static_cast<int>(2 * slot.chunk) +
                                        (slot.direction == plan::Direction::forward ? 0 : 1)});
    }
    list.push_back({.template_index = static_cast<int>(role.size()) - 1});
  }
  const std::size_t stages = lists.size();
  result.lists = issue_lists(graph::InstanceLists(std::move(lists)), stages);
  map_templates(timed, Works::slowed);
  map_templates(timed, Works::least);
  return result;
}

Time step_time(const plan::PipelineShape& shape, Time message = Time(0)) {
  const Pipeline stages = pipeline(shape, message);
  const auto run = replay(stages.plan());
  return run ? run->step_time : Time::max();
}

TEST(Replay, UniformStagesTakeMicrobatchesPlusStagesLessOne) {
  // (m + p - 1)(F + B) = (6 + 3)(10 + 20) = 270 ms
  EXPECT_EQ(step_time({plan::Schedule::one_f_one_b, 4, 1, 6}), 270_ms);
  EXPECT_EQ(step_time({plan::Schedule::gpipe, 4, 1, 6}), 270_ms);
}

TEST(Replay, InterleavingDividesTheBubbleByTheChunks) {
  // m (F + B) + (p - 1)(F + B) / v = 8 x 30 + 3 x 30 / 2 = 285 ms
  EXPECT_EQ(step_time({plan::Schedule::interleaved, 4, 2, 8}), 285_ms);
}

TEST(Replay, ManyMicrobatchesAreSkippedByPeriodsToThePicosecond) {
  // (m + p - 1)(F + B), of 8000 instances a few hundred are evaluated.
  const Pipeline stages = pipeline({plan::Schedule::one_f_one_b, 4, 1, 1000});
  const auto run = replay(stages.plan());
  ASSERT_TRUE(run);
  EXPECT_EQ(run->step_time, 30_ms * 1003);
  EXPECT_LT(run->evaluated, 200);
  for (const StageTime& stage : run->stages) {
    EXPECT_EQ(stage.kernels, 30_ms * 1000);
  }
}

TEST(Replay, WithAndWithoutPeriodsTheStepIsTheSame) {
  for (const plan::Schedule schedule : {plan::Schedule::one_f_one_b, plan::Schedule::interleaved}) {
    const std::int64_t chunks = schedule == plan::Schedule::interleaved ? 3 : 1;
    Pipeline stages = pipeline({schedule, 4, chunks, 64}, 3_ms);
    const auto skipped = replay(stages.plan());
    stages.lists.repetition.length = 0;
    const auto all = replay(stages.plan());
    ASSERT_TRUE(skipped && all);
    EXPECT_LT(skipped->evaluated, all->evaluated);
    EXPECT_EQ(skipped->step_time, all->step_time);
    EXPECT_EQ(skipped->stages.front().busy, all->stages.front().busy);
  }
}

TEST(Replay, TheBoundOfUniformStagesIsTheStep) {
  for (const Time message : {0_ms, 1_ms}) {
    const plan::PipelineShape shape{plan::Schedule::one_f_one_b, 4, 1, 6};
    const Pipeline stages = pipeline(shape, message);
    const Time bound = least_time(stages.plan());
    EXPECT_LE(bound, step_time(shape, message));
    if (message == Time(0)) {
      EXPECT_EQ(bound, 270_ms);
    }
  }
}

TEST(Replay, StagesThatWaitForOneAnotherAreAMistake) {
  Pipeline stages = pipeline({plan::Schedule::one_f_one_b, 2, 1, 4});
  std::swap(stages.lists.templates[0][0], stages.lists.templates[0][2]);  // backward first
  EXPECT_FALSE(replay(stages.plan()));
}

TEST(IssueLists, OneForwardOneBackwardRepeatsAfterTheWarmUp) {
  const Pipeline stages = pipeline({plan::Schedule::one_f_one_b, 4, 1, 10});
  EXPECT_EQ(stages.lists.repetition.length, 2);
  EXPECT_EQ(stages.lists.repetition.from, (std::vector<std::int64_t>{3, 2, 1, 0}));
}

}  // namespace
}  // namespace orrery::estimate
