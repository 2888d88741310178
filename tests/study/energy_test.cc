// SPDX-License-Identifier: Apache-2.0
#include "study/energy.h"

#include <gtest/gtest.h>

#include "../simulate/builder.h"
#include "simulate/simulate.h"

namespace orrery::study {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace): the builders of this test

/// A run of `workload` on devices of 400 W, 100 W of them idle.
Run run_of(const graph::Workload& workload, machine::Machine machine) {
  machine.device.power = Power(400);
  machine.device.idle_power = Power(100);
  Run run;
  run.machine = machine;
  run.workload = workload;
  run.devices = workload.ranks;
  simulate::SimulateOptions how;
  how.algorithms = run.algorithms;
  run.timeline = simulate::simulate(workload, machine, how).value();
  return run;
}

const plan::RankLayout kTwo{{{plan::Axis::tp, 2}, {plan::Axis::dp, 1}, {plan::Axis::pp, 1}}};

/// Runs 10 ms of kernels on each of two devices, then an all-reduce of 1 MB: 1 ms + 2 us.
Run kernels_and_reduce() {
  return run_of(workload_of(kTwo, {{compute_node("a", 10_ms),
                                    collective_node("b", plan::Axis::tp, Bytes(1'000'000), {0})}}),
                machine_of({dimension(topology::DimensionKind::switched, 2)}));
}

TEST(Energy, IsIdleAlwaysAndTheRestWhileSomethingRuns) {
  auto run = kernels_and_reduce();
  run.machine.device.overlap_units = 0.2;
  const auto energy = energy_of(run).value();
  EXPECT_DOUBLE_EQ(energy.idle.value(), 2 * 100 * 11.002e-3);
  EXPECT_DOUBLE_EQ(energy.kernels.value(), 2 * 300 * 10e-3);
  EXPECT_DOUBLE_EQ(energy.communication.value(), 2 * 300 * 0.2 * 1.002e-3);
  EXPECT_DOUBLE_EQ(energy.total().value(), energy.device().value());
  EXPECT_DOUBLE_EQ(energy.average_power(run).value() * 2 * 11.002e-3, energy.device().value());
}

TEST(Energy, OfLinksIsBytesTimesTheirEnergy) {
  // 2 members send 2 * 1/2 MB each: 2 MB at 40 pJ/B.
  auto run = kernels_and_reduce();
  run.machine.network[0].energy_per_byte = EnergyPerByte(40e-12);
  const auto energy = energy_of(run).value();
  EXPECT_DOUBLE_EQ(energy.links[0].value(), 2e6 * 40e-12);
  EXPECT_DOUBLE_EQ(energy.total().value(), energy.device().value() + 80e-6);
}

TEST(Energy, OfDeviceMemoryIsPartOfTheDevices) {
  // 10 ms at 1 GB/s on 2 devices: 20 MB. Counted in the device's power, so the total stays.
  auto run = kernels_and_reduce();
  const Energy without = energy_of(run)->total();
  run.machine.device.memory[0].energy_per_byte = EnergyPerByte(30e-12);
  EXPECT_DOUBLE_EQ(energy_of(run)->device_memory.value(), 20e6 * 30e-12);
  EXPECT_EQ(energy_of(run)->total(), without);
  run.machine.device.memory[0].energy_per_byte = EnergyPerByte(1);  // absurd: at most all of it
  EXPECT_EQ(energy_of(run)->device_memory, energy_of(run)->device());
}

TEST(Energy, OfLowerTiersIsAdded) {
  machine::Machine machine = machine_of({dimension(topology::DimensionKind::switched, 1)});
  machine.device.memory.push_back({"host", 1_GiB, 1_GBps, Time(0), EnergyPerByte(100e-12)});
  graph::Node copy;
  copy.kind = graph::Node::Kind::copy;
  copy.stream = plan::StepStream::to_host;
  copy.group = plan::Axis::to_host;
  copy.bytes = Bytes(1'000'000);
  const auto run = run_of(
      workload_of({{{plan::Axis::tp, 1}, {plan::Axis::dp, 1}, {plan::Axis::pp, 1}}}, {{copy}}),
      machine);
  EXPECT_DOUBLE_EQ(energy_of(run)->lower_memory.value(), 100e-6);
}

TEST(Energy, OfAMachineWithoutPowerIsNotKnown) {
  auto run = kernels_and_reduce();
  run.machine.device.power = Power(0);
  EXPECT_FALSE(energy_of(run));
}

TEST(Cost, IsDevicesTimesTimeTimesPrice) {
  auto run = kernels_and_reduce();
  EXPECT_FALSE(cost_of(run));
  run.machine.device.price_per_hour = Money(3.6);
  run.tokens_per_s = 1e6;
  const auto cost = cost_of(run).value();
  EXPECT_DOUBLE_EQ(cost.per_step.value(), 2 * 11.002e-3 * 3.6 / 3600);
  // Two devices for 1 s make a million tokens: 2 * 3.6 / 3600.
  EXPECT_DOUBLE_EQ(cost.per_million_tokens.value(), 0.002);
}

machine::Machine machine_with_energy() {
  machine::Machine machine = machine::load_machine("dgx-a100-80g").value();
  machine.device.power = Power(400);
  machine.device.idle_power = Power(60);
  for (topology::NetworkDimension& dimension : machine.network) {
    dimension.energy_per_byte = EnergyPerByte(100e-12);
  }
  return machine;
}

Run step(std::int64_t tp, std::int64_t dp, std::int64_t pp, bool fold = true) {
  plan::Plan plan;
  plan.tp = tp;
  plan.dp = dp;
  plan.pp = pp;
  plan.global_batch = 4 * dp;
  plan.sequence = 256;
  RunOptions options;
  options.fold = fold;
  options.allow_oom = true;
  return run_step(zoo::load_model("gpt2").value(), machine_with_energy(), plan, 0, options).value();
}

TEST(Energy, IsLinearInDevicesThatDoTheSame) {
  // Two nodes whose data-parallel groups stay inside: as many replicas again, no more traffic per
  // device, but a larger all-reduce. Without it (kernels alone) exactly twice.
  const auto one = energy_of(step(1, 1, 1)).value();
  const auto eight = energy_of(step(1, 8, 1)).value();
  EXPECT_NEAR(eight.kernels.value(), 8 * one.kernels.value(), 0.05 * eight.kernels.value());
}

void expect_between_idle_and_full_power(std::int64_t tp, std::int64_t dp, std::int64_t pp) {
  const auto run = step(tp, dp, pp);
  const auto energy = energy_of(run).value();
  const double device_seconds =
      static_cast<double>(run.devices) * to_seconds(run.timeline.step_time);
  EXPECT_GE(energy.device().value(), 60 * device_seconds * (1 - 1e-9));
  EXPECT_LE(energy.device().value(), 400 * device_seconds * (1 + 1e-9));
  const double links = (energy.total() - energy.device()).value();
  EXPECT_EQ(links > 0, run.devices > 1);
  const auto unfolded = energy_of(step(tp, dp, pp, false)).value();
  EXPECT_NEAR(unfolded.total() / energy.total(), 1, 1e-9);
}

TEST(Energy, LiesBetweenIdleAndFullPowerAndFoldingDoesNotChangeIt) {
  for (const std::int64_t tp : {1, 2, 4}) {
    for (const std::int64_t dp : {1, 2, 4}) {
      for (const std::int64_t pp : {1, 2, 4}) {
        SCOPED_TRACE(::testing::Message() << "tp " << tp << ", dp " << dp << ", pp " << pp);
        expect_between_idle_and_full_power(tp, dp, pp);
      }
    }
  }
}

}  // namespace
}  // namespace orrery::study
