// SPDX-License-Identifier: Apache-2.0
// What the knobs of a plan do to the time of a step, on machines made so that the law is visible.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "../simulate/builder.h"
#include "../workload/parallel/cases.h"
#include "simulate/simulate.h"

namespace orrery {
namespace {

/// Kernels at their peak and bandwidth; links and host of `rate`, without latency.
machine::Machine machine_with_knob(Bandwidth rate, std::int64_t devices = 1) {
  auto machine =
      testing::machine_of({testing::dimension(topology::DimensionKind::switched, devices)});
  machine.network[0].bandwidth = rate;
  machine.network[0].latency = Time(0);
  machine.device.kernels.gemm_launch = Time(0);
  machine.device.memory.push_back({"host", 1_GiB, rate, Time(0)});
  machine.device.memory.push_back({"nvme", 1_GiB, rate * 0.5, Time(0)});
  return machine;
}

Time step_time_with(const zoo::Model& model, const plan::Plan& plan,
                    const machine::Machine& machine) {
  const auto timeline = simulate::simulate(cases::lowered(model, plan), machine);
  if (!timeline) {
    ADD_FAILURE() << timeline.error().to_string();
    return Time(0);
  }
  return timeline->step_time;
}

double seconds(const zoo::Model& model, const plan::Plan& plan, const machine::Machine& machine) {
  return to_seconds(step_time_with(model, plan, machine));
}

constexpr Bandwidth kAtOnce{1e18};

TEST(KnobTime, EveryRecomputedLayerAddsTheSameTime) {
  // One stage: T(n) = T(none) + n f.
  const zoo::Model model = cases::small_gpt(4);
  const machine::Machine machine = machine_with_knob(1_GBps);
  plan::Plan plan;
  const double none = seconds(model, plan, machine);
  plan.recompute = plan::Recompute::full;
  const double all = seconds(model, plan, machine);
  for (const std::int64_t layers : {1, 2, 3}) {
    plan.recompute_layers = layers;
    const double share = static_cast<double>(layers) / 4;
    EXPECT_NEAR(seconds(model, plan, machine), none + (all - none) * share, 1e-9);
  }
}

TEST(KnobTime, OffloadedUpdateIsBoundByTheLinkOutAndTheLastParametersBack) {
  // E parameters at 1 GB/s: gradients 4 E and update 30 E on the way out, an eighth of 2 E back.
  // The device saves clip 8 E, Adam 28 E and cast 6 E at 1 GB/s.
  const zoo::Model model = cases::small_gpt(2);
  const machine::Machine machine = machine_with_knob(1_GBps);
  const double e = 2.0 * cases::kLayer + cases::kEmbedding + cases::kNorm;
  plan::Plan plan;
  const double device = seconds(model, plan, machine);
  plan.offload_optimizer = plan::Offload::cpu;
  EXPECT_NEAR(seconds(model, plan, machine), device + (34 + 2.0 / 8 - 42) * e * 1e-9, 1e-7);
}

TEST(KnobTime, StorageAtHalfTheRateIsBoundByWritingBesideReading) {
  // Out: gradients 4 E, update 30 E, states 12 E at half the rate; reads of 12 E run beside. The
  // first eighth of the reads and the last of the parameters stick out.
  const zoo::Model model = cases::small_gpt(2);
  const machine::Machine machine = machine_with_knob(1_GBps);
  const double e = 2.0 * cases::kLayer + cases::kEmbedding + cases::kNorm;
  plan::Plan plan{.offload_optimizer = plan::Offload::cpu};
  const double host = seconds(model, plan, machine);
  plan.offload_optimizer = plan::Offload::nvme;
  const double storage = seconds(model, plan, machine);
  EXPECT_GE(storage, host + 24 * e * 1e-9 - 2 * e * 1e-9);
  EXPECT_LE(storage, host + (24 + 24.0 / 8) * e * 1e-9);
}

TEST(KnobTime, OffloadOfActivationsIsFreeOnAnInstantLink) {
  const zoo::Model model = cases::small_gpt(3);
  const machine::Machine machine = machine_with_knob(kAtOnce);
  plan::Plan plan{.global_batch = 2};
  const Time plain = step_time_with(model, plan, machine);
  plan.offload_activations = 1;
  EXPECT_EQ(step_time_with(model, plan, machine), plain);
}

RC_GTEST_PROP(KnobTime, OffloadOfActivationsIsMonotoneAndBoundByTheLink, ()) {
  const zoo::Model model = cases::small_gpt(*rc::gen::inRange<std::int64_t>(1, 5));
  const machine::Machine machine = machine_with_knob(
      Bandwidth(static_cast<double>(*rc::gen::inRange<std::int64_t>(1, 1000)) * 1e6));
  plan::Plan plan{.global_batch = *rc::gen::inRange<std::int64_t>(1, 4)};
  Time before = step_time_with(model, plan, machine);
  for (const double share : {0.25, 0.5, 1.0}) {
    plan.offload_activations = share;
    const graph::Workload workload = cases::lowered(model, plan);
    Bytes out{0};
    cases::each_node(workload, 0, [&](const graph::Node& node) {
      out += node.stream == plan::StepStream::to_host ? node.bytes : Bytes(0);
    });
    const Time now = step_time_with(model, plan, machine);
    RC_ASSERT(now >= before);
    RC_ASSERT(now >= out / machine.device.memory[1].bandwidth);
    before = now;
  }
}

/// One wide layer, so that pieces of GEMMs are as efficient as whole ones.
zoo::Model wide() {
  zoo::Model model = cases::small_gpt(1);
  model.hidden = 1024;
  model.heads = model.kv_heads = 8;
  model.head_dim = 128;
  model.ffn = 4096;
  model.max_positions = 4096;
  return model;
}

TEST(KnobTime, ChunksHideCollectivesBehindTheirGemms) {
  // Where memory is fast (every piece reads the weight again): never slower than one piece, never
  // faster than without any communication.
  const auto machine_of = [](Bandwidth rate) {
    machine::Machine machine = machine_with_knob(rate, 4);
    machine.device.memory[0].bandwidth = Bandwidth(1e13);
    return machine;
  };
  for (const double rate : {5e9, 20e9, 80e9}) {
    const machine::Machine machine = machine_of(Bandwidth(rate));
    plan::Plan plan{.tp = 4, .sequence_parallel = true, .attention = zoo::AttentionKernel::flash};
    const Time whole = step_time_with(wide(), plan, machine);
    plan.tp_chunks = 4;
    const Time pieces = step_time_with(wide(), plan, machine);
    EXPECT_LT(pieces, whole) << rate;
    EXPECT_GT(pieces, step_time_with(wide(), plan, machine_of(kAtOnce))) << rate;
  }
}

TEST(KnobTime, PiecesOfACollectivePayItsLatencyEach) {
  machine::Machine machine = machine_with_knob(kAtOnce, 4);
  machine.network[0].latency = 1_ms;
  plan::Plan plan{.tp = 4, .sequence_parallel = true, .attention = zoo::AttentionKernel::flash};
  const Time whole = step_time_with(wide(), plan, machine);
  plan.tp_chunks = 4;
  EXPECT_GT(step_time_with(wide(), plan, machine), whole);
}

TEST(KnobTime, TwiceThePeakIsAtMostTwiceAsFast) {
  machine::Machine machine = machine_with_knob(kAtOnce);
  machine.device.peak[static_cast<std::size_t>(graph::DataType::fp8)] = 2_TFLOPs;
  machine.device.memory[0].bandwidth = Bandwidth(1e13);
  plan::Plan plan{.attention = zoo::AttentionKernel::flash};
  const double plain = seconds(wide(), plan, machine);
  for (const plan::Quantization quantization :
       {plan::Quantization::fp8_delayed, plan::Quantization::fp8_current,
        plan::Quantization::mxfp8}) {
    plan.quantization = quantization;
    EXPECT_LT(seconds(wide(), plan, machine), plain);
    EXPECT_GT(seconds(wide(), plan, machine), plain / 2);
  }
}

TEST(KnobTime, AnExtraReadForTheMaximumCostsTime) {
  machine::Machine machine = machine_with_knob(kAtOnce);
  plan::Plan plan{.quantization = plan::Quantization::fp8_delayed};
  const Time delayed = step_time_with(wide(), plan, machine);
  plan.quantization = plan::Quantization::fp8_current;
  EXPECT_GT(step_time_with(wide(), plan, machine), delayed);
}

TEST(KnobTime, ShorterDocumentsAreNeverSlower) {
  const machine::Machine machine = machine_with_knob(kAtOnce);
  plan::Plan plan{.attention = zoo::AttentionKernel::flash};
  Time before = step_time_with(wide(), plan, machine);
  for (const char* documents : {"4096", "3072,1024", "2048,2048", "1024,1024,1024,1024"}) {
    plan.documents = documents;
    const Time now = step_time_with(wide(), plan, machine);
    EXPECT_LE(now, before) << documents;
    before = now;
  }
}

}  // namespace
}  // namespace orrery
