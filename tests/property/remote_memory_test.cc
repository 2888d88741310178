// SPDX-License-Identifier: Apache-2.0
// What remote memory does to the time of a step.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "../simulate/builder.h"
#include "../workload/parallel/cases.h"
#include "simulate/simulate.h"

namespace orrery {
namespace {

using cases::kEmbedding;
using cases::kLayer;
using cases::kNorm;

constexpr Bandwidth kNoTime{1e18};

/// Devices in nodes of two around a pool of as many groups; kernels of `kernels`.
machine::Machine machine_with_pool(Bandwidth kernels, std::int64_t devices) {
  machine::Machine machine =
      testing::machine_of({testing::dimension(topology::DimensionKind::switched, devices)});
  machine.device.peak.fill(FlopRate(1e30));
  machine.device.memory[0].bandwidth = kernels;
  machine.device.kernels.gemm_launch = Time(0);
  machine.network[0].latency = Time(0);
  machine.remote_memory = {.kind = memory::RemoteKind::hierarchical,
                           .capacity = 1024_GiB,
                           .bandwidth = 1_GBps,
                           .node_devices = 2,
                           .groups = devices,
                           .switches = 1,
                           .switch_bandwidth = kNoTime,
                           .fabric_bandwidth = 1_GBps,
                           .in_switch = true};
  return machine;
}

plan::Plan remote_plan(std::int64_t dp, bool overlap) {
  return {.dp = dp,
          .global_batch = dp,
          .zero = 3,
          .offload_optimizer = plan::Offload::remote,
          .offload_params = plan::Offload::remote,
          .overlap_grad_reduce = overlap,
          .overlap_param_gather = overlap};
}

Time remote_step_time(const zoo::Model& model, const plan::Plan& plan,
                      const machine::Machine& machine) {
  const auto timeline = simulate::simulate(cases::lowered(model, plan), machine);
  if (!timeline) {
    ADD_FAILURE() << timeline.error().to_string();
    return Time(0);
  }
  return timeline->step_time;
}

Bytes copied(const zoo::Model& model, const plan::Plan& plan, plan::StepStream stream) {
  Bytes sum{0};
  cases::each_node(cases::lowered(model, plan), 0, [&](const graph::Node& node) {
    sum += node.stream == stream ? node.bytes : Bytes(0);
  });
  return sum;
}

TEST(RemoteTime, InstantKernelsLeaveTheStreamsOfTheMemory) {
  // 1 GB/s each way, one device with a memory of its own. Loads of 2 bytes a parameter for the
  // forward, then backwards for head n, layers L, L, embedding E, whose 4 bytes of gradients are
  // stored as they come: 2 n until the head is loaded, 2 L until the first layer is, then stores of
  // 4 (2 L + E) without a gap. The update loads 16 bytes a parameter, in eight pieces; the last
  // piece's store of 14 / 8 remains.
  machine::Machine machine = machine_with_pool(kNoTime, 1);
  machine.remote_memory = {
      .kind = memory::RemoteKind::per_device, .capacity = 1_GiB, .bandwidth = 1_GBps};
  const double all = 2.0 * kLayer + kEmbedding + kNorm;
  const double backward = 2.0 * kNorm + 2 * kLayer + 4 * (2 * kLayer + kEmbedding);
  const double expected = 2 * all + backward + 16 * all + 14.0 / 8 * all;
  const Time time = remote_step_time(cases::small_gpt(2), remote_plan(1, true), machine);
  EXPECT_NEAR(to_seconds(time) * 1e9, expected, 100);
}

TEST(RemoteTime, BlockAfterBlockWithoutPrefetch) {
  // As above, but a block's gradients are stored before the next block is loaded.
  machine::Machine machine = machine_with_pool(kNoTime, 1);
  machine.remote_memory = {
      .kind = memory::RemoteKind::per_device, .capacity = 1_GiB, .bandwidth = 1_GBps};
  const double all = 2.0 * kLayer + kEmbedding + kNorm;
  const double expected = 2 * all + 6 * all + 16 * all + 14.0 / 8 * all;
  const Time time = remote_step_time(cases::small_gpt(2), remote_plan(1, false), machine);
  EXPECT_NEAR(to_seconds(time) * 1e9, expected, 100);
}

TEST(RemoteTime, DevicesOfAPoolWaitForOneAnother) {
  // A pool of 1 GB/s for two devices is half of it for each.
  const zoo::Model model = cases::small_gpt(2);
  machine::Machine own = machine_with_pool(kNoTime, 2);
  own.network[0].bandwidth = kNoTime;
  own.remote_memory = {
      .kind = memory::RemoteKind::per_device, .capacity = 1_GiB, .bandwidth = 1_GBps};
  machine::Machine pool = own;
  pool.remote_memory.kind = memory::RemoteKind::pool;
  const double ratio = remote_step_time(model, remote_plan(2, true), pool) /
                       remote_step_time(model, remote_plan(2, true), own);
  EXPECT_NEAR(ratio, 2, 1e-3);
}

/// Kernels and links from 10 MB/s to 10 GB/s.
Bandwidth any_rate() {
  return Bandwidth(static_cast<double>(*rc::gen::inRange<std::int64_t>(10, 10000)) * 1e6);
}

machine::Machine any_remote_machine(std::int64_t devices) {
  machine::Machine machine = machine_with_pool(any_rate(), devices);
  machine.network[0].bandwidth = any_rate();
  machine.remote_memory.bandwidth = any_rate();
  machine.remote_memory.switch_bandwidth = any_rate();
  machine.remote_memory.fabric_bandwidth = any_rate();
  machine.remote_memory.chunk = Bytes(*rc::gen::inRange<std::int64_t>(1'000, 1'000'000));
  return machine;
}

plan::Plan any_remote_plan(std::int64_t dp) {
  plan::Plan plan = remote_plan(dp, *rc::gen::arbitrary<bool>());
  plan.pool_collectives = *rc::gen::arbitrary<bool>();
  plan.global_batch = dp * *rc::gen::inRange<std::int64_t>(1, 4);
  return plan;
}

RC_GTEST_PROP(RemoteTime, NoStepIsFasterThanItsCopiesThroughTheFabric, ()) {
  const zoo::Model model = cases::small_gpt(*rc::gen::inRange<std::int64_t>(1, 4));
  const machine::Machine machine = any_remote_machine(4);
  const plan::Plan plan = any_remote_plan(4);
  const Time time = remote_step_time(model, plan, machine);
  for (const plan::StepStream stream : {plan::StepStream::from_host, plan::StepStream::to_host}) {
    RC_ASSERT(time >= copied(model, plan, stream) / machine.remote_memory.fabric_bandwidth);
  }
}

RC_GTEST_PROP(RemoteTime, FasterMemoryIsNeverSlower, ()) {
  const zoo::Model model = cases::small_gpt(*rc::gen::inRange<std::int64_t>(1, 4));
  const machine::Machine machine = any_remote_machine(4);
  const plan::Plan plan = any_remote_plan(4);
  const Time time = remote_step_time(model, plan, machine);
  for (const auto bandwidth :
       {&memory::RemoteMemory::bandwidth, &memory::RemoteMemory::switch_bandwidth,
        &memory::RemoteMemory::fabric_bandwidth}) {
    machine::Machine faster = machine;
    faster.remote_memory.*bandwidth = faster.remote_memory.*bandwidth * 2.0;
    RC_ASSERT(remote_step_time(model, plan, faster) <= time);
  }
}

RC_GTEST_PROP(RemoteTime, PrefetchIsNeverSlower, ()) {
  const zoo::Model model = cases::small_gpt(*rc::gen::inRange<std::int64_t>(1, 4));
  const machine::Machine machine = any_remote_machine(4);
  plan::Plan plan = any_remote_plan(4);
  plan.overlap_param_gather = plan.overlap_grad_reduce = false;
  const Time exposed = remote_step_time(model, plan, machine);
  plan.overlap_param_gather = true;
  const Time loads_ahead = remote_step_time(model, plan, machine);
  RC_ASSERT(loads_ahead <= exposed);
  plan.overlap_grad_reduce = true;
  RC_ASSERT(remote_step_time(model, plan, machine) <= loads_ahead);
}

RC_GTEST_PROP(RemoteTime, GathersInTheSwitchesAreNeverSlowerThanOnAnEquallySlowNetwork, ()) {
  // Of 4 devices' W the network carries 3/4 W to each: at most half the fabric's rate, so that its
  // gather alone takes longer than loading all of W through the fabric does.
  const zoo::Model model = cases::small_gpt(*rc::gen::inRange<std::int64_t>(1, 4));
  machine::Machine machine = any_remote_machine(4);
  machine.remote_memory.chunk = Bytes(1'000);
  machine.remote_memory.bandwidth = machine.remote_memory.switch_bandwidth =
      machine.remote_memory.fabric_bandwidth * 4.0;
  machine.network[0].bandwidth = machine.remote_memory.fabric_bandwidth * 0.5;
  plan::Plan plan = any_remote_plan(4);
  plan.pool_collectives = false;
  const Time apart = remote_step_time(model, plan, machine);
  plan.pool_collectives = true;
  RC_ASSERT(remote_step_time(model, plan, machine) <= apart);
}

}  // namespace
}  // namespace orrery
