// SPDX-License-Identifier: Apache-2.0
#include "study/critical_path.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "../simulate/builder.h"
#include "simulate/simulate.h"
#include "study/run.h"

namespace orrery::study {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace): the builders of this test

CriticalPath path_of(const graph::Workload& workload, const machine::Machine& machine,
                     bool fold = true) {
  const auto timeline = simulate::simulate(
      workload, machine, {.fold = fold, .record_spans = true, .algorithms = {}, .progress = {}});
  EXPECT_TRUE(timeline) << timeline.error().to_string();
  return critical_path(workload, *timeline, machine);
}

Time time_of(const std::vector<PathEntry>& entries, const std::string& name) {
  Time time{0};
  for (const PathEntry& entry : entries) {
    time += entry.name == name ? entry.time : Time(0);
  }
  return time;
}

Time sum(const std::vector<PathEntry>& entries) {
  Time time{0};
  for (const PathEntry& entry : entries) {
    time += entry.time;
  }
  return time;
}

void expect_whole(const CriticalPath& path) {
  EXPECT_EQ(sum(path.categories), path.step_time);
  EXPECT_EQ(sum(path.items), path.step_time);
  Time kinds{0};
  for (const Time time : path.by_kind) {
    kinds += time;
  }
  EXPECT_EQ(kinds, path.step_time);
  Time kernels{0};
  for (const Time time : path.kernels) {
    kernels += time;
  }
  EXPECT_EQ(kernels, path[PathKind::kernel]);
  EXPECT_EQ(path[PathKind::wait], Time(0));
}

const plan::RankLayout kAlone{{{plan::Axis::tp, 1}, {plan::Axis::dp, 1}, {plan::Axis::pp, 1}}};
const plan::RankLayout kTwoStages{{{plan::Axis::tp, 1}, {plan::Axis::dp, 1}, {plan::Axis::pp, 2}}};

machine::Machine one_device() {
  return machine_of({dimension(topology::DimensionKind::switched, 1)});
}
machine::Machine two_devices() {
  return machine_of({dimension(topology::DimensionKind::switched, 2)});
}

TEST(CriticalPath, OfOneStreamIsAllOfIt) {
  // 2 ms forward, 3 ms backward, three times.
  const auto path = path_of(
      workload_of(
          kAlone,
          {{compute_node("a", 2_ms), compute_node("b", 3_ms, {}, plan::StepPhase::backward)}}, 3),
      one_device());
  expect_whole(path);
  EXPECT_EQ(path[PathKind::kernel], 15_ms);
  EXPECT_EQ(time_of(path.categories, "forward elementwise"), 6_ms);
  EXPECT_EQ(time_of(path.categories, "backward elementwise"), 9_ms);
  // Bytes / bandwidth, to the picosecond of each of the six kernels.
  EXPECT_NEAR(to_seconds(path.kernels[static_cast<std::size_t>(Bound::memory)]), 15e-3, 1e-9);
}

TEST(CriticalPath, HiddenCommunicationIsNotOnIt) {
  // The all-reduce takes 1.002 ms beside a 4 ms kernel.
  const auto path = path_of(
      workload_of(
          {{{plan::Axis::tp, 1}, {plan::Axis::dp, 2}, {plan::Axis::pp, 1}}},
          {{collective_node("reduce", plan::Axis::dp, Bytes(1'000'000)), compute_node("a", 4_ms)}}),
      two_devices());
  expect_whole(path);
  EXPECT_EQ(path[PathKind::kernel], 4_ms);
  EXPECT_EQ(path[PathKind::collective], 0_ms);
}

TEST(CriticalPath, ExposedCommunicationIs) {
  const auto path =
      path_of(workload_of({{{plan::Axis::tp, 2}, {plan::Axis::dp, 1}, {plan::Axis::pp, 1}}},
                          {{compute_node("a", 1_ms),
                            collective_node("reduce", plan::Axis::tp, Bytes(1'000'000), {0}),
                            compute_node("b", 1_ms, {1})}}),
              two_devices());
  expect_whole(path);
  EXPECT_EQ(time_of(path.categories, "tp all_reduce"), 1_ms + 2_us);
  EXPECT_EQ(time_of(path.items, "reduce"), 1_ms + 2_us);
  EXPECT_EQ(path[PathKind::kernel], 2_ms);
}

TEST(CriticalPath, WhatConcurrentCommunicationAddsStandsApart) {
  // As above with 3/4 of the bandwidth while it runs: 1.002 ms do 0.7515 ms of work.
  machine::Machine machine = two_devices();
  machine.device.overlap_memory = 0.25;
  const auto path = path_of(
      workload_of(
          {{{plan::Axis::tp, 1}, {plan::Axis::dp, 2}, {plan::Axis::pp, 1}}},
          {{collective_node("reduce", plan::Axis::dp, Bytes(1'000'000)), compute_node("a", 4_ms)}}),
      machine);
  expect_whole(path);
  EXPECT_EQ(path[PathKind::kernel], 4_ms);
  EXPECT_NEAR(to_seconds(path[PathKind::slowdown]), 0.2505e-3, 1e-11);
}

TEST(CriticalPath, GoesOverTheMessageToTheSender) {
  // Stage 0 computes 5 ms and sends 1 MB (1 ms + 1 us); stage 1 waits, computes 2 ms.
  const auto path = path_of(
      workload_of(kTwoStages,
                  {{compute_node("first", 5_ms),
                    send("activations", plan::Channel::forward, Bytes(1'000'000), {0})},
                   {receive("input", plan::Channel::forward), compute_node("second", 2_ms, {0})}}),
      two_devices());
  expect_whole(path);
  EXPECT_EQ(path.step_time, 8_ms + 1_us);
  EXPECT_EQ(time_of(path.items, "forward kernel"), 7_ms);
  EXPECT_EQ(time_of(path.items, "activations"), 1_ms + 1_us);
  EXPECT_EQ(time_of(path.categories, "pp message"), 1_ms + 1_us);
}

TEST(CriticalPath, AMessageThatWaitsForItsReceiverIsNotOnIt) {
  // Stage 1 first computes 9 ms on its own: the message has long arrived.
  graph::Node own = compute_node("own", 9_ms);
  own.phase = plan::StepPhase::optimizer;
  const auto path = path_of(
      workload_of(kTwoStages,
                  {{compute_node("first", 5_ms),
                    send("activations", plan::Channel::forward, Bytes(1'000'000), {0})},
                   {receive("input", plan::Channel::forward), own, compute_node("b", 2_ms, {0})}}),
      two_devices());
  expect_whole(path);
  EXPECT_EQ(path[PathKind::message], 0_ms);
  EXPECT_EQ(time_of(path.categories, "optimizer elementwise"), 9_ms);
  EXPECT_EQ(time_of(path.categories, "forward elementwise"), 2_ms);
}

TEST(CriticalPath, OfACollectiveComesFromItsLastMember) {
  // Two stages all-reduce over pp; stage 1 needs 7 ms before it, stage 0 only 1 ms. From rank 0,
  // the lower of the two that finish together, the path goes over to rank 1.
  const auto stage = [](Time time, plan::StepPhase phase) {
    graph::Node node = compute_node("a", time);
    node.phase = phase;
    return std::vector<graph::Node>{node,
                                    collective_node("norm", plan::Axis::pp, Bytes(1'000'000), {0})};
  };
  const auto path = path_of(workload_of(kTwoStages, {stage(1_ms, plan::StepPhase::forward),
                                                     stage(7_ms, plan::StepPhase::backward)}),
                            two_devices());
  expect_whole(path);
  EXPECT_EQ(time_of(path.categories, "backward elementwise"), 7_ms);
  EXPECT_EQ(time_of(path.categories, "forward elementwise"), 0_ms);
  EXPECT_EQ(time_of(path.categories, "pp all_reduce"), 1_ms + 2_us);
}

TEST(CriticalPath, OfAHostThatIsTooSlowIsTheHost) {
  // Ten kernels of 1 ms, each dispatched in 3 ms: 30 ms of issuing, then the last kernel.
  graph::Workload workload = workload_of(kAlone, {{compute_node("a", 1_ms)}}, 10);
  workload.host_dispatch = 3_ms;
  const auto path = path_of(workload, one_device());
  expect_whole(path);
  EXPECT_EQ(path.step_time, 31_ms);
  EXPECT_EQ(path[PathKind::host], 30_ms);
  EXPECT_EQ(path[PathKind::kernel], 1_ms);
}

TEST(CriticalPath, OfAHostThatWaitsGoesThroughWhatItWaitedFor) {
  // 4 ms dispatch; a (10 ms) ends at 14 ms, and the host waits for it; b is issued until 18 ms and
  // takes 1 ms: 4 + 10 + 4 + 1 = 19 ms.
  graph::Node first = compute_node("a", 10_ms);
  first.host_sync = true;
  graph::Workload workload = workload_of(kAlone, {{first, compute_node("b", 1_ms)}});
  workload.host_dispatch = 4_ms;
  const auto path = path_of(workload, one_device());
  expect_whole(path);
  EXPECT_EQ(path.step_time, 19_ms);
  EXPECT_EQ(path[PathKind::host], 8_ms);
  EXPECT_EQ(path[PathKind::kernel], 11_ms);
}

TEST(CriticalPath, OfAHostThatIsFastEnoughBeginsWithOneDispatch) {
  // 1 us dispatch runs ahead of 1 ms kernels: only the first is waited for.
  graph::Workload workload = workload_of(kAlone, {{compute_node("a", 1_ms)}}, 10);
  workload.host_dispatch = 1_us;
  const auto path = path_of(workload, one_device());
  expect_whole(path);
  EXPECT_EQ(path[PathKind::host], 1_us);
  EXPECT_EQ(path[PathKind::kernel], 10_ms);
}

TEST(CriticalPath, OfExpertsHasTheirExchange) {
  plan::Plan plan;
  plan.ep = 4;
  plan.dp = 4;
  plan.global_batch = 8;
  plan.sequence = 1024;
  RunOptions options;
  options.record_spans = true;
  options.allow_oom = true;
  const auto run = run_step(zoo::load_model("mixtral-8x7b").value(),
                            machine::load_machine("dgx-h100").value(), plan, 0, options);
  ASSERT_TRUE(run) << run.error().to_string();
  const CriticalPath path = critical_path(run->workload, run->timeline, run->machine);
  expect_whole(path);
  EXPECT_GT(time_of(path.categories, "ep all_to_all"), 0_ms);
  EXPECT_GT(time_of(path.categories, "forward grouped_gemm"), 0_ms);
}

/// Any plan of gpt2 on up to 16 devices, sensible or not.
plan::Plan random_plan() {
  plan::Plan plan;
  plan.tp = *rc::gen::element<std::int64_t>(1, 2, 4);
  plan.pp = *rc::gen::element<std::int64_t>(1, 2, 4);
  plan.dp = *rc::gen::element<std::int64_t>(1, 2);
  plan.cp = *rc::gen::element<std::int64_t>(1, 2);
  plan.global_batch = 8;
  plan.sequence = 256;
  plan.zero = plan.dp > 1 ? *rc::gen::element(0, 1, 3) : 0;
  plan.recompute =
      *rc::gen::element(plan::Recompute::none, plan::Recompute::selective, plan::Recompute::full);
  plan.sequence_parallel = plan.tp > 1 && *rc::gen::arbitrary<bool>();
  plan.overlap_grad_reduce = *rc::gen::arbitrary<bool>();
  plan.overlap_p2p = *rc::gen::arbitrary<bool>();
  plan.host_sync = *rc::gen::arbitrary<bool>();
  plan.p2p_host_sync = *rc::gen::arbitrary<bool>();
  plan.host_dispatch = *rc::gen::element(0_us, 5_us, 60_us);
  return plan;
}

Run any_traced_run() {
  static const zoo::Model model = zoo::load_model("gpt2").value();
  static const machine::Machine machine = machine::load_machine("dgx-a100-80g").value();
  const plan::Plan plan = random_plan();
  RunOptions options;
  options.record_spans = true;
  options.fold = *rc::gen::arbitrary<bool>();
  options.allow_oom = true;
  auto run = run_step(model, machine, plan, 0, options);
  RC_PRE(run.has_value());
  return std::move(*run);
}

// ---- What the path follows: every span's causes.

void every_span_is_ready_when_its_cause_ends(const Run& run) {
  const std::vector<simulate::Span>& spans = run.timeline.spans;
  Time before{0};
  for (std::uint32_t i = 0; i < spans.size(); ++i) {
    const simulate::Span& span = spans[i];
    RC_ASSERT(span.ready >= before);  // spans stand in this order
    before = span.ready;
    if (span.cause == simulate::Span::kNone) {
      RC_ASSERT(span.ready == Time(0));
      continue;
    }
    RC_ASSERT(span.cause < i);
    const simulate::Span& cause = spans[span.cause];
    if (span.kind == graph::Node::Kind::receive) {  // the other side of the message before it
      RC_ASSERT(cause.kind == graph::Node::Kind::send && span.cause + 1 == i);
      RC_ASSERT(cause.begin == span.begin && cause.end == span.end);
    } else {
      RC_ASSERT(cause.end == span.ready);
      RC_ASSERT(cause.rank == span.rank || cause.kind == graph::Node::Kind::send);
    }
  }
}

void a_collective_begins_with_its_last_member(const Run& run) {
  for (const simulate::Span& span : run.timeline.spans) {
    if (span.kind != graph::Node::Kind::collective && span.kind != graph::Node::Kind::copy) {
      RC_ASSERT(span.last_member == simulate::Span::kNone);
      continue;
    }
    const simulate::Span& last = run.timeline.spans[span.last_member];
    RC_ASSERT(last.begin == span.begin && last.end == span.end && last.group == span.group);
    RC_ASSERT(span.begin == std::max(last.ready, last.host_end));
    RC_ASSERT(span.begin >= std::max(span.ready, span.host_end));
  }
}

void the_host_goes_on_where_its_cause_left_it(const Run& run) {
  for (const simulate::Span& span : run.timeline.spans) {
    RC_ASSERT(span.host_begin <= span.host_end);
    if (span.kind == graph::Node::Kind::send || span.kind == graph::Node::Kind::receive) {
      continue;  // sent by the device
    }
    if (span.host_cause == simulate::Span::kNone) {
      RC_ASSERT(span.host_begin == Time(0));
      continue;
    }
    const simulate::Span& cause = run.timeline.spans[span.host_cause];
    RC_ASSERT(span.host_begin == (span.host_waited ? cause.end : cause.host_end));
  }
}

/// The runs are what takes time: each is held against all laws.
RC_GTEST_PROP(CriticalPath, CoversTheStepWithoutGapsAndFollowsCauses, ()) {
  const Run run = any_traced_run();
  const CriticalPath path = critical_path(run.workload, run.timeline, run.machine);
  RC_ASSERT(path.step_time == run.timeline.step_time);
  RC_ASSERT(sum(path.categories) == path.step_time);
  RC_ASSERT(sum(path.items) == path.step_time);
  RC_ASSERT(path[PathKind::wait] == Time(0));
  every_span_is_ready_when_its_cause_ends(run);
  a_collective_begins_with_its_last_member(run);
  the_host_goes_on_where_its_cause_left_it(run);
}

}  // namespace
}  // namespace orrery::study
