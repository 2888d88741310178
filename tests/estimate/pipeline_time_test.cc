// SPDX-License-Identifier: Apache-2.0
#include "estimate/pipeline_time.h"

#include <gtest/gtest.h>

namespace orrery {
namespace {

PassCost pass(Time work) {
  return {.work = work, .latency = work, .issue = Time(0), .kernels = work};
}

StageTime stage(Time forward, Time backward, Time next = Time(0)) {
  StageTime result;
  result.work = result.edge = {pass(forward), pass(backward)};
  result.next = next;
  return result;
}

PipelineTime time(const std::vector<StageTime>& stages, const PipelineShape& shape,
                  const Messaging& messaging = {}) {
  PipelineTime result;
  time_pipeline(stages, shape, messaging, result);
  return result;
}

constexpr PipelineShape kFourStages{Schedule::one_f_one_b, 4, 1, 6};

TEST(PipelineTime, UniformStagesTakeMicrobatchesPlusStagesLessOne) {
  // (m + p - 1)(F + B) = (6 + 3)(10 + 20) = 270 ms; the busiest stage works 6 x 30 = 180 ms.
  const PipelineTime t = time(std::vector(4, stage(10_ms, 20_ms)), kFourStages);
  EXPECT_EQ(t.total, 270_ms);
  EXPECT_EQ(t.busy, 180_ms);
}

TEST(PipelineTime, GPipeOfUniformStagesTakesAsLong) {
  // (m + p - 1) F + (m + p - 1) B
  PipelineShape shape = kFourStages;
  shape.schedule = Schedule::gpipe;
  EXPECT_EQ(time(std::vector(4, stage(10_ms, 20_ms)), shape).total, 270_ms);
}

TEST(PipelineTime, InterleavingDividesTheBubbleByTheChunks) {
  // m (F + B) + (p - 1)(F + B) / v = 8 x 30 + 3 x 30 / 2 = 285 ms
  StageTime half = stage(10_ms, 20_ms);
  half.edge = {pass(5_ms), pass(10_ms)};
  EXPECT_EQ(time(std::vector(4, half), {Schedule::interleaved, 4, 2, 8}).total, 285_ms);
}

TEST(PipelineTime, TheSlowestStageSetsThePace) {
  // Stage 2 of 4 takes 15 + 30: 6 x 45, and the other three once: 3 x 30. 270 + 90 = 360 ms.
  std::vector<StageTime> stages(4, stage(10_ms, 20_ms));
  stages[2] = stage(15_ms, 30_ms);
  EXPECT_EQ(time(stages, kFourStages).total, 360_ms);
}

TEST(PipelineTime, StagesThatWaitForTheirSendsAreBusyWithThem) {
  // p = 2, m = 3, F = 10, B = 20, c = 1: the last stage takes 31 per microbatch, the first one's
  // forward comes before (with its message), its last backward after: 3 x 31 + 11 + 20 = 124 ms.
  const std::vector<StageTime> stages(2, stage(10_ms, 20_ms, 1_ms));
  EXPECT_EQ(time(stages, {Schedule::one_f_one_b, 2, 1, 3}).total, 124_ms);
}

TEST(PipelineTime, OneStageWithAFastHostIsItsWork) {
  EXPECT_EQ(time({stage(10_ms, 20_ms)}, {Schedule::one_f_one_b, 1, 1, 5}).total, 150_ms);
}

TEST(PipelineTime, ASlowHostIssuesEveryMicrobatchOfAStage) {
  // Issue 12 + 24 ms for 10 + 20 ms of work. 4 x 36 ms until the host begins the last microbatch;
  // from there its forward (12) and, after 12 ms of issue, its backward (25): 12 + 25 = 37 ms.
  StageTime slow = stage(10_ms, 20_ms);
  slow.work.forward.issue = slow.work.forward.latency = 12_ms;
  slow.work.backward.issue = 24_ms;
  slow.work.backward.latency = 25_ms;
  EXPECT_EQ(time({slow}, {Schedule::one_f_one_b, 1, 1, 5}).total, 181_ms);
}

TEST(PipelineTime, APassAfterWhichTheHostWaitsTakesItsLatency) {
  // Nothing of an issue is hidden behind the pass before: 5 x (13 + 25) = 190 ms.
  StageTime slow = stage(10_ms, 20_ms);
  slow.work.forward.latency = 13_ms;
  slow.work.backward.latency = 25_ms;
  slow.work.forward.ends_synchronised = slow.work.backward.ends_synchronised = true;
  EXPECT_EQ(time({slow}, {Schedule::one_f_one_b, 1, 1, 5}).total, 190_ms);
}

TEST(PipelineTime, EarlierStagesEndLater) {
  // Each backward of 20 ms and message of 1 ms later than the stage behind it.
  const PipelineTime t =
      time(std::vector(3, stage(10_ms, 20_ms, 1_ms)), {Schedule::one_f_one_b, 3, 1, 4});
  EXPECT_EQ(t.end[0], t.total);
  EXPECT_EQ(t.end[0] - t.end[1], 21_ms);
  EXPECT_EQ(t.end[1] - t.end[2], 21_ms);
}

}  // namespace
}  // namespace orrery
