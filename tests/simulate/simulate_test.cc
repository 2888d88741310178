// SPDX-License-Identifier: Apache-2.0
#include "simulate/simulate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "builder.h"

namespace orrery::simulate {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace): the builders of this test

Timeline run_workload(const graph::Workload& workload, const machine::Machine& machine,
                      const SimulateOptions& options = {}) {
  auto timeline = simulate(workload, machine, options);
  EXPECT_TRUE(timeline.has_value()) << timeline.error().to_string();
  return timeline.value_or(Timeline{});
}

const plan::RankLayout alone{{{plan::Axis::tp, 1}, {plan::Axis::dp, 1}, {plan::Axis::pp, 1}}};

TEST(Simulate, KernelsOfOneStreamFollowOneAnother) {
  // 2 ms + 3 ms, three times: 15 ms.
  const graph::Workload workload = workload_of(
      alone, {{compute_node("a", 2_ms), compute_node("b", 3_ms, {}, plan::StepPhase::backward)}},
      3);
  const Timeline timeline =
      run_workload(workload, machine_of({dimension(topology::DimensionKind::switched, 1)}));
  EXPECT_EQ(timeline.step_time, 15_ms);
  EXPECT_EQ(timeline.time("forward"), 6_ms);
  EXPECT_EQ(timeline.time("backward"), 9_ms);
  EXPECT_EQ(timeline.events, 6U);
}

TEST(Simulate, BlockingAllReduceIsExposed) {
  // 1 ms, ring all-reduce of 1 MB over 2 ranks at 1 GB/s: 2 * 1/2 MB = 1 ms + 2 steps of 1 us; 1
  // ms.
  const graph::Workload workload = workload_of(
      {{{plan::Axis::tp, 2}, {plan::Axis::dp, 1}, {plan::Axis::pp, 1}}},
      {{compute_node("a", 1_ms), collective_node("reduce", plan::Axis::tp, Bytes(1'000'000), {0}),
        compute_node("b", 1_ms, {1})}});
  const Timeline timeline =
      run_workload(workload, machine_of({dimension(topology::DimensionKind::switched, 2)}));
  EXPECT_EQ(timeline.step_time, 3_ms + 2_us);
  EXPECT_EQ(timeline.time("tp_exposed"), 1_ms + 2_us);
  EXPECT_EQ(timeline.fold.simulated, 1);
}

TEST(Simulate, OverlappedAllReduceIsHiddenAndSlowsComputeDown) {
  // The 1.002 ms all-reduce runs beside a 4 ms kernel that gets 3/4 of the memory bandwidth:
  // while it runs, 1.002 * 3/4 = 0.7515 ms of work are done; then 3.2485 ms: 4.2505 ms.
  machine::Machine machine = machine_of({dimension(topology::DimensionKind::switched, 2)});
  machine.device.overlap_memory = 0.25;
  const graph::Workload workload = workload_of(
      {{{plan::Axis::tp, 1}, {plan::Axis::dp, 2}, {plan::Axis::pp, 1}}},
      {{collective_node("reduce", plan::Axis::dp, Bytes(1'000'000)), compute_node("a", 4_ms)}});
  const Timeline timeline = run_workload(workload, machine);
  EXPECT_NEAR(to_seconds(timeline.step_time), 4.2505e-3, 1e-9);
  EXPECT_EQ(timeline.breakdown.hidden[*graph::GroupIndex(plan::Axis::dp)], 1_ms + 2_us);
  EXPECT_EQ(timeline.time("dp_exposed"), 0_ps);
}

/// A GEMM of 1 ms, bound by its units: 4 units, deep K, no ramp and no launch.
graph::Node gemm_of_one_millisecond(machine::Machine& machine) {
  machine.device.units = 4;
  machine.device.memory[0].bandwidth = Bandwidth(1e15);
  compute::KernelCoefficients& kernels = machine.device.kernels;
  kernels.gemm_peak_share = 1;
  kernels.gemm_tile_load = kernels.gemm_k_ramp = kernels.gemm_wave_quantisation = 0;
  kernels.gemm_launch = Time(0);
  // 4 * 3 tiles of 256 x 128: 1e9 FLOP at 1 TFLOP/s with k = 1e9 / (2 * 1024 * 384).
  graph::Node node = compute_node("gemm", 1_ms);
  node.operators[0].kind = graph::OperatorKind::gemm;
  node.operators[0].gemm = {1, 1024, 384, 1272};
  return node;
}

TEST(Simulate, AMessageSlowsKernelsLessThanACollective) {
  // A 100 us message beside a 1 ms GEMM. With half of the units gone while it lasts 50 us of work
  // are done in it: 50 us later. A message takes a quarter: 25 us later. Without shares: nothing.
  const auto step = [](double collective, double message) {
    machine::Machine machine = machine_of({dimension(topology::DimensionKind::switched, 2)});
    machine.network[0].latency = Time(0);
    const graph::Node gemm = gemm_of_one_millisecond(machine);
    machine.device.overlap_units = collective;
    machine.device.overlap_send_units = message;
    return run_workload(
               workload_of({{{plan::Axis::tp, 1}, {plan::Axis::dp, 1}, {plan::Axis::pp, 2}}},
                           {{send("out", plan::Channel::forward, Bytes(100'000)), gemm},
                            {receive("in", plan::Channel::forward)}}),
               machine)
        .step_time;
  };
  const Time undisturbed = step(0, 0);
  EXPECT_NEAR(to_seconds(undisturbed), 1e-3, 1e-6);
  EXPECT_EQ(step(0.5, 0), undisturbed);
  EXPECT_NEAR(to_seconds(step(0.5, 0.25) - undisturbed), 25e-6, 1e-7);
  EXPECT_NEAR(to_seconds(step(0, 0.5) - undisturbed), 50e-6, 1e-7);
}

TEST(Simulate, ContentionCostsNothingWhereNothingOverlaps) {
  // The all-reduce waits for the GEMM, and the next GEMM for it.
  const auto step = [](double share) {
    machine::Machine machine = machine_of({dimension(topology::DimensionKind::switched, 2)});
    const graph::Node gemm = gemm_of_one_millisecond(machine);
    graph::Node next = gemm;
    next.after = {1};
    machine.device.overlap_units = machine.device.overlap_memory = share;
    return run_workload(
               workload_of({{{plan::Axis::tp, 2}, {plan::Axis::dp, 1}, {plan::Axis::pp, 1}}},
                           {{gemm, collective_node("reduce", plan::Axis::tp, Bytes(1'000'000), {0}),
                             next}}),
               machine)
        .step_time;
  };
  EXPECT_EQ(step(0.5), step(0));
}

TEST(Simulate, WaitsAloneTakeNoTime) {
  // Two waits in a row, then a kernel that needs what came before them: no event lies between.
  graph::Node first;
  first.kind = graph::Node::Kind::wait;
  first.name = "wait";
  graph::Node second = first;
  second.after = {1};
  const Timeline timeline =
      run_workload(workload_of({{{plan::Axis::tp, 2}, {plan::Axis::dp, 1}, {plan::Axis::pp, 1}}},
                               {{collective_node("reduce", plan::Axis::tp, Bytes(1'000'000)), first,
                                 second, compute_node("work", 1_ms, {0})}}),
                   machine_of({dimension(topology::DimensionKind::switched, 2)}));
  EXPECT_GT(timeline.step_time, 2_ms);
}

TEST(Simulate, PipelineOfTwoStages) {
  // Stage 0: 1 ms and a send of 1 MB (1 ms + 1 us); stage 1: receive, 1 ms. Two microbatches: stage
  // 1 starts at 2.001, its second message arrives at 3.001 ms (sends follow one another),
  // ends 4.002 ms: second send starts at 2.001 (the stream is free then), arrives 3.002.
  const graph::Workload workload = workload_of(
      {{{plan::Axis::tp, 1}, {plan::Axis::dp, 1}, {plan::Axis::pp, 2}}},
      {{compute_node("work", 1_ms), send("out", plan::Channel::forward, Bytes(1'000'000), {0})},
       {receive("in", plan::Channel::forward), compute_node("work", 1_ms, {0})}},
      2);
  const Timeline timeline =
      run_workload(workload, machine_of({dimension(topology::DimensionKind::switched, 2)}));
  EXPECT_EQ(timeline.step_time, 4_ms + 2_us);
  EXPECT_EQ(timeline.critical_rank, 1);
  EXPECT_EQ(timeline.time("forward"), 2_ms);
  // 1 ms before the first message starts is bubble; the rest of the waiting is a message in flight.
  EXPECT_EQ(timeline.time("bubble"), 1_ms);
  EXPECT_EQ(timeline.time("pp_exposed"), 1_ms + 2_us);
}

TEST(Simulate, AMessageThatComesEarlyIsOnTheReceiversStreamToo) {
  // The first of two messages arrives after 1.001 ms, while rank 1's stream of receives still waits
  // for its 5 ms kernel; the second too. Both spans were once on the sender's stream.
  graph::Node late = receive("in", plan::Channel::forward);
  late.after = {0};
  const graph::Workload workload =
      workload_of({{{plan::Axis::tp, 1}, {plan::Axis::dp, 1}, {plan::Axis::pp, 2}}},
                  {{send("out", plan::Channel::forward, Bytes(1'000'000)),
                    send("out", plan::Channel::forward, Bytes(1'000'000))},
                   {compute_node("work", 5_ms), late, late}});
  const Timeline timeline =
      run_workload(workload, machine_of({dimension(topology::DimensionKind::switched, 2)}),
                   {.record_spans = true});
  std::vector<Span> received;
  for (const Span& span : timeline.spans) {
    if (span.kind == graph::Node::Kind::receive) {
      received.push_back(span);
    }
  }
  ASSERT_EQ(received.size(), 2U);
  EXPECT_EQ(received[0].stream, plan::StepStream::receive);
  EXPECT_EQ(received[1].stream, plan::StepStream::receive);
  EXPECT_EQ(received[0].end, 1_ms + 1_us);
  EXPECT_EQ(timeline.step_time, 5_ms);
}

TEST(Simulate, SlowHostStarvesTheDevice) {
  // Kernels of 1 us, 100 of them in one node, 10 us of host time each: the last is issued at 1000
  // us and ends at 1001 us; the device is busy 100 us of it.
  graph::Node node = compute_node("a", 1_us);
  node.operators.assign(100, kernel(1_us));
  graph::Workload workload = workload_of(alone, {{node}});
  workload.host_dispatch = 10_us;
  const Timeline timeline =
      run_workload(workload, machine_of({dimension(topology::DimensionKind::switched, 1)}));
  EXPECT_EQ(timeline.step_time, 1001_us);
  EXPECT_EQ(timeline.time("host"), 901_us);
  EXPECT_EQ(timeline.time("forward"), 100_us);
}

TEST(Simulate, HostRunsAheadOfASlowDevice) {
  // 10 kernels of 1 ms: only the first waits for its 10 us of dispatch.
  graph::Node node = compute_node("a", 1_ms);
  node.operators.assign(10, kernel(1_ms));
  graph::Workload workload = workload_of(alone, {{node}}, 2);
  workload.host_dispatch = 10_us;
  const Timeline timeline =
      run_workload(workload, machine_of({dimension(topology::DimensionKind::switched, 1)}));
  EXPECT_EQ(timeline.step_time, 20_ms + 10_us);
}

TEST(Simulate, HostSynchronisationExposesEveryDispatch) {
  // As above, but the host waits for each instance: 10 us before each.
  graph::Node node = compute_node("a", 1_ms);
  node.host_sync = true;
  graph::Workload workload = workload_of(alone, {{node}}, 3);
  workload.host_dispatch = 10_us;
  const Timeline timeline =
      run_workload(workload, machine_of({dimension(topology::DimensionKind::switched, 1)}));
  EXPECT_EQ(timeline.step_time, 3_ms + 30_us);
}

TEST(Simulate, CommunicationSlowsKernelsDownNotTheHost) {
  // The host issues the all-reduce (100 us), then ten kernels of 1 us: the last is issued at 1100
  // us and ends at 1101, whatever runs beside it; kernels run 10 us of that.
  machine::Machine machine = machine_of({dimension(topology::DimensionKind::switched, 2)});
  machine.device.overlap_memory = 0.9;
  graph::Node node = compute_node("a", 1_us);
  node.operators.assign(10, kernel(1_us));
  graph::Workload workload =
      workload_of({{{plan::Axis::tp, 1}, {plan::Axis::dp, 2}, {plan::Axis::pp, 1}}},
                  {{collective_node("reduce", plan::Axis::dp, Bytes(500'000)), node}});
  workload.host_dispatch = 100_us;
  const Timeline timeline = run_workload(workload, machine);
  EXPECT_EQ(timeline.step_time, 1101_us);
  EXPECT_EQ(timeline.time("forward"), 10_us);
  EXPECT_EQ(timeline.time("host"), 1091_us);
}

TEST(Simulate, TwoAxesOnOneNicShareIt) {
  // dp pairs (0,1) and pp sends 0 -> 2 both leave through the one port of each device: a 1 MB
  // all-reduce (1 ms of port time) and a 1 MB send (1 ms) take 2 ms together.
  machine::Machine machine = machine_of({dimension(topology::DimensionKind::switched, 2),
                                         dimension(topology::DimensionKind::switched, 2)});
  for (topology::NetworkDimension& d : machine.network) {
    d.latency = Time(0);
    d.nic = "nic";
  }
  const auto step = [&] {
    return run_workload(
               workload_of({{{plan::Axis::tp, 1}, {plan::Axis::dp, 2}, {plan::Axis::pp, 2}}},
                           {{collective_node("reduce", plan::Axis::dp, Bytes(1'000'000)),
                             send("out", plan::Channel::forward, Bytes(1'000'000))},
                            {receive("in", plan::Channel::forward)}}),
               machine)
        .step_time;
  };
  EXPECT_EQ(step(), 2_ms);
  machine.network[1].nic = "other";
  EXPECT_EQ(step(), 1_ms);
}

TEST(Simulate, BreakdownsOfAllRanksSumToTheStepTime) {
  const graph::Workload workload = workload_of(
      {{{plan::Axis::tp, 2}, {plan::Axis::dp, 1}, {plan::Axis::pp, 2}}},
      {{compute_node("work", 1_ms), collective_node("reduce", plan::Axis::tp, 64_KiB, {0}),
        send("out", plan::Channel::forward, 1_MiB, {1})},
       {receive("in", plan::Channel::forward), compute_node("work", 3_ms, {0})}},
      5);
  SimulateOptions unfolded;
  unfolded.fold = false;
  for (const Timeline& timeline :
       {run_workload(workload, machine_of({dimension(topology::DimensionKind::switched, 4)})),
        run_workload(workload, machine_of({dimension(topology::DimensionKind::switched, 4)}),
                     unfolded)}) {
    for (const Breakdown& breakdown : timeline.by_rank) {
      Time sum{0};
      for (const Time part : breakdown.time) {
        sum += part;
      }
      EXPECT_EQ(sum, timeline.step_time);
    }
  }
}

TEST(Simulate, DeadlockNamesWhatWaits) {
  const graph::Workload workload =
      workload_of({{{plan::Axis::tp, 1}, {plan::Axis::dp, 1}, {plan::Axis::pp, 2}}},
                  {{compute_node("work", 1_ms)}, {receive("activations", plan::Channel::forward)}});
  const auto result =
      simulate(workload, machine_of({dimension(topology::DimensionKind::switched, 2)}));
  ASSERT_FALSE(result.has_value());
  EXPECT_THAT(result.error().mistakes.back().expected,
              ::testing::HasSubstr("rank 1: pass, microbatch 0: activations on stream receive"));
}

TEST(Simulate, InstancesThatNothingAsksForAreAnError) {
  const plan::RankLayout pair{{{plan::Axis::tp, 2}, {plan::Axis::dp, 1}, {plan::Axis::pp, 1}}};
  const auto run_times = [&](int times) {
    const auto sum = collective_node("sum", plan::Axis::tp, Bytes(1'000'000));
    return simulate(workload_of(pair, {{sum}}, times),
                    machine_of({dimension(topology::DimensionKind::switched, 2)}));
  };
  EXPECT_TRUE(run_times(2));
  const auto third = run_times(3);
  ASSERT_FALSE(third);
  EXPECT_THAT(third.error().to_string(), ::testing::HasSubstr("instance 2 is never issued"));
}

TEST(Simulate, ATimeBeyondItsRangeIsAnErrorWithAndWithoutShortcuts) {
  // 2^63 ps are 106.75 days. A kernel of 1 GB at 1 byte/s is 11,574 days; one of 5e15 ns is 57.9
  // days, and two of them are too long.
  machine::Machine machine = machine_of({dimension(topology::DimensionKind::switched, 1)});
  machine.device.memory.front().bandwidth = Bandwidth(1);
  const auto refused = [&](Bytes bytes, int times) {
    graph::Node node = compute_node("a", 1_ms);
    node.operators.front().bytes = bytes;
    const graph::Workload workload = workload_of(alone, {{node, node}}, times);
    for (const bool shortcuts : {true, false}) {
      const auto result = simulate(workload, machine, {.shortcuts = shortcuts, .algorithms = {}});
      ASSERT_FALSE(result.has_value()) << to_seconds(result->step_time) << " s";
      EXPECT_THAT(result.error().to_string(), ::testing::HasSubstr("longer than 106 days"));
    }
  };
  refused(1'000'000'000_B, 1);
  refused(5'000'000_B, 1);
  refused(1'000'000_B, 1000);
}

TEST(Simulate, ProgressIsOfTheWholeRun) {
  const graph::Workload workload =
      workload_of(alone, {{compute_node("a", 1_ms), compute_node("b", 1_ms)}}, 10'000);
  std::vector<double> shares;
  std::uint64_t last_events = 0;
  SimulateOptions options{.shortcuts = false, .algorithms = {}};
  options.progress = [&](double share, std::uint64_t events) {
    shares.push_back(share);
    last_events = events;
    // 20,000 events in all.
    EXPECT_NEAR(static_cast<double>(events) / share, 20'000, 50);
  };
  run_workload(workload, machine_of({dimension(topology::DimensionKind::switched, 1)}), options);
  ASSERT_GE(shares.size(), 4U);
  EXPECT_TRUE(std::is_sorted(shares.begin(), shares.end()));
  EXPECT_GT(last_events, 16'000U);
  EXPECT_LE(shares.back(), 1);
}

TEST(Simulate, LayoutMustFillTheMachine) {
  const auto result = simulate(workload_of(alone, {{compute_node("a", 1_ms)}}),
                               machine_of({dimension(topology::DimensionKind::switched, 8)}));
  ASSERT_FALSE(result.has_value());
}

}  // namespace
}  // namespace orrery::simulate
