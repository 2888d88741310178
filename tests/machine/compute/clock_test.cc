// SPDX-License-Identifier: Apache-2.0
// Laws of power, clock and energy (clock.h), on a device with the constants of an H200.
#include "machine/compute/clock.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <limits>

#include "machine/compute/compute_model.h"

namespace orrery::compute {
namespace {

Device h200() {
  Device device;
  device.name = "H200";
  device.units = 132;
  device.peak[static_cast<std::size_t>(graph::DataType::bf16)] = FlopRate(989.4e12);
  device.peak[static_cast<std::size_t>(graph::DataType::fp8)] = FlopRate(2 * 989.4e12);
  device.memory = {{.name = "hbm", .capacity = Bytes(141'000'000'000), .bandwidth = 4800_GBps}};
  device.power = Power(700);
  device.idle_power = Power(121);
  device.power_model = {.busy_power = Power(84),
                        .gemm_power = Power(1003),
                        .attention_power = Power(1130),
                        .decode_power = Power(133),
                        .decode_flash2_power = Power(695),
                        .memory_energy = EnergyPerByte(90e-12),
                        .full_clock_rate = 1.0815};
  device.kernels.gemm_peak_share = 0.806;
  return device;
}

/// A step of a second at the tables' rate: so much of it in products of a pipe use of 0.83, in
/// kernels that stream at full bandwidth, and idle.
Load step(double products, double streams, double idle) {
  const PowerModel model = h200().power_model;
  return {.seconds = products + streams + idle,
          .clocked = products,
          .busy = products + streams,
          .joules = products * 0.83 * model.table_clock * model.gemm_power.value(),
          .bytes = streams * 4.8e12};
}

TEST(Clock, IdleDrawsIdlePowerAtFullClock) {
  const ClockPoint idle = at_own_clock(step(0, 0, 1), h200());
  EXPECT_EQ(idle.clock, 1);
  EXPECT_DOUBLE_EQ(idle.power.value(), 121);
}

TEST(Clock, AKernelThatStreamsKeepsItsTimeAtAnyClock) {
  // 121 + 84 + 4.8 x 90 = 637 W, below 0.986 x 700 = 690.2.
  const ClockPoint free = at_own_clock(step(0, 1, 0), h200());
  EXPECT_EQ(free.clock, 1);
  EXPECT_NEAR(free.power.value(), 637, 1e-9);
  Device capped = h200();
  capped.power_cap = Power(600);
  const ClockPoint held = at_own_clock(step(0, 1, 0), capped);
  EXPECT_LT(held.clock, 1);
  EXPECT_EQ(held.time, free.time);
  EXPECT_LE(held.power, Power(0.986 * 600));
}

TEST(Clock, OfALoopOfProductsIsTheRootOfItsPower) {
  // P(x) = 121 + (84 + 0.83 x 1003) x^1.8 = 690.2 at x = (569.2 / 916.5)^(1/1.8) = 0.7675; the
  // clock is 98 of 128 steps, 0.7656. An H200's loop of 8192^3 holds 1,479 of 1,980 MHz, 0.747,
  // with the operands' traffic beside it.
  const ClockPoint loop = at_own_clock(step(1, 0, 0), h200());
  EXPECT_DOUBLE_EQ(loop.clock, 98.0 / 128);
  EXPECT_NEAR(loop.rate, 98.0 / 128 / 0.897, 1e-12);
  EXPECT_NEAR(to_seconds(loop.time), 0.897 * 128 / 98, 1e-9);
  EXPECT_NEAR(loop.power.value(), 121 + 916.49 * std::pow(98.0 / 128, 1.8), 0.01);
}

TEST(Clock, AttentionIsSlowedByTheClockOfItsOwnTables) {
  // At 0.75 products keep 0.75 / 0.9 of their tables' rate and attention 0.75: a second of each
  // takes 1.2 and 4 / 3 s. Both keep no more than sustained_clock allows.
  Device device = h200();
  device.power_model.table_clock = 0.9;
  device.power_model.attention_table_clock = 1;
  Load both = step(2, 0, 0);
  both.attending = 1;
  const ClockPoint held = at_clock(both, 0.75, device);
  EXPECT_NEAR(held.rate, 0.75 / 0.9, 1e-12);
  EXPECT_NEAR(held.attention_rate, 0.75, 1e-12);
  EXPECT_NEAR(to_seconds(held.time), 1.2 + 4.0 / 3, 1e-9);
  device.sustained_clock = 0.7;
  EXPECT_NEAR(at_clock(both, 0.75, device).attention_rate, 0.7, 1e-12);
  device.power_model.attention_table_clock = 0.8;  // below that of products: 0.4 / 0.8
  EXPECT_NEAR(at_clock(both, 0.4, device).attention_rate, 0.5, 1e-12);
  device.power_model.attention_table_clock = 0;  // as products
  EXPECT_NEAR(at_clock(both, 0.69, device).attention_rate, 0.7, 1e-12);
  device.power_model.attention_table_clock = 0.8;  // below products', 0.5 of full clock: 0.5 / 0.8
  EXPECT_NEAR(at_clock(both, 0.5, device).attention_rate, 0.625, 1e-12);
}

TEST(Clock, TheUsualMixHasTheJoulesOfEitherTablesClock) {
  // A second of the usual mix: 0.65 s of products at 0.83 of the pipe and half of full clock, 0.12
  // s of attention at 0.55 and full clock; 4.8 TB/s x (0.20 x 0.85 + 0.65 x 0.15).
  Device device = h200();
  device.power_model.table_clock = 0.5;
  device.power_model.attention_table_clock = 1;
  const Load usual{.seconds = 1,
                   .clocked = 0.77,
                   .attending = 0.12,
                   .busy = 0.97,
                   .joules = 0.65 * 0.83 * 0.5 * 1003 + 0.12 * 0.55 * 1130,
                   .bytes = 4.8e12 * (0.2 * 0.85 + 0.65 * 0.15)};
  device.power_cap = Power(450);
  const ClockPoint own = at_own_clock(usual, device);
  ASSERT_LT(own.clock, 1);
  set_usual_clock(device);
  EXPECT_DOUBLE_EQ(device.full_clock, own.clock);
  EXPECT_DOUBLE_EQ(device.attention_clock, own.attention_rate);
}

TEST(Clock, KernelsRunAtTheRateOfTheirTables) {
  Device device = h200();
  device.clock = 0.8;
  device.attention_clock = 0.5;
  graph::Operator attention{
      .name = {}, .kind = graph::OperatorKind::attention, .gemm = {64, 8192, 8192, 128}};
  attention.flops = Flops(1e15);
  EXPECT_EQ(lone_kernel_time(attention, device), lone_kernel_time(attention, device, 0.5));
  EXPECT_EQ(kernel_time(attention, device).alone, lone_kernel_time(attention, device, 0.5));
  attention.kind = graph::OperatorKind::gemm;
  EXPECT_EQ(lone_kernel_time(attention, device), lone_kernel_time(attention, device, 0.8));
}

TEST(Clock, NeedsFewerJoulesPerFlopUntilIdlePowerWins) {
  // (121 + 916.5 x^1.8) / (0.83 x 1070 x): 1.10 at 0.897, 1.00 at 0.75, 0.87 at 0.5, 0.85 at 0.3,
  // 1.13 at 0.15 pJ/FLOP.
  const Device device = h200();
  const auto joules = [&](double clock) {
    const double flops = 0.83 * 1.070e15 * 0.897;  // of the second at the tables' rate
    return 1e12 * at_clock(step(1, 0, 0), clock, device).energy.value() / flops;
  };
  EXPECT_NEAR(joules(0.897), 1.095, 0.005);
  EXPECT_NEAR(joules(0.75), 1.001, 0.005);
  EXPECT_NEAR(joules(0.5), 0.866, 0.01);
  EXPECT_GT(joules(0.15), joules(0.3));
}

TEST(Clock, HalfTheBitsAtEqualPipeUseHaveTheSamePowerAndHalfTheJoules) {
  const Device device = h200();
  graph::Operator wide{
      .name = {}, .kind = graph::OperatorKind::gemm, .gemm = {1, 1 << 20, 1 << 14, 1 << 14}};
  wide.flops = flops_of(wide.gemm);
  graph::Operator narrow = wide;
  narrow.type = graph::DataType::fp8;
  const Load of_wide = load_of(wide, device);
  const Load of_narrow = load_of(narrow, device);
  EXPECT_NEAR(of_narrow.seconds / of_wide.seconds, 0.5, 1e-3);
  EXPECT_NEAR(of_narrow.joules / of_wide.joules, 0.5, 1e-12);
}

TEST(Clock, DecodeAttentionDrawsByBandwidthAndMoreWhereHeadsAreNotPacked) {
  // 4.8 GB take at least a millisecond: 133 W or, by FlashAttention-2, 695 W of it.
  graph::Operator decode{
      .name = {}, .kind = graph::OperatorKind::attention, .gemm = {64, 4, 4096, 128}};
  decode.bytes = Bytes(4'800'000'000);
  decode.flops = Flops(1e9);
  EXPECT_NEAR(load_of(decode, h200()).joules, 0.133, 1e-9);
  decode.library = graph::AttentionLibrary::flash2;
  EXPECT_NEAR(load_of(decode, h200()).joules, 0.695, 1e-9);
}

TEST(Clock, WithoutAPowerModelIsKeptAndDesignPowerIsDrawn) {
  Device plain = h200();
  plain.power_model = {};
  const ClockPoint point = at_own_clock(step(1, 0, 1), plain);
  EXPECT_EQ(point.clock, 1);
  EXPECT_EQ(point.rate, 1);
  EXPECT_NEAR(point.energy.value(), 121 * 2 + 579 * 1, 1e-9);
}

Load any_load() {
  const auto share = [] { return *rc::gen::inRange(0, 101) / 100.0; };
  return step(share(), share(), share() + 0.01);
}

RC_GTEST_PROP(ClockProperty, PowerIsNeverAboveTheCapNorBelowIdle, ()) {
  Device device = h200();
  device.power_cap = Power(*rc::gen::inRange(360, 701));
  const ClockPoint point = at_own_clock(any_load(), device);
  RC_ASSERT(point.power >= device.idle_power);
  RC_ASSERT(point.power <= device.power_cap || point.clock <= kLowestClockStep / 128.0);
}

RC_GTEST_PROP(ClockProperty, AHigherCapIsNeverSlower, ()) {
  Device low = h200();
  low.power_cap = Power(*rc::gen::inRange(200, 701));
  Device high = low;
  high.power_cap = Power(*rc::gen::inRange(200, 701) + 500);
  const Load load = any_load();
  const ClockPoint slow = at_own_clock(load, low);
  const ClockPoint fast = at_own_clock(load, high);
  RC_ASSERT(fast.time <= slow.time);
  RC_ASSERT(fast.clock >= slow.clock);
  RC_ASSERT(at_own_clock(load, at_boost(low)).clock == 1);
}

RC_GTEST_PROP(ClockProperty, MoreWorkOfAnySortLowersTheClock, ()) {
  const Device device = h200();
  const Load load = any_load();
  const double clock = at_own_clock(load, device).clock;
  for (const auto more : {&Load::joules, &Load::bytes, &Load::busy}) {
    Load heavier = load;
    heavier.*more *= 1.2;
    RC_ASSERT(at_own_clock(heavier, device).clock <= clock);
  }
}

RC_GTEST_PROP(ClockProperty, ARepeatedStepHasThePowerOfOneAndHalvesTheirMean, ()) {
  const Device device = h200();
  const Load a = any_load();
  const Load b = any_load();
  const ClockPoint one = at_own_clock(a, device);
  const ClockPoint four = at_own_clock(a * 4, device);
  RC_ASSERT(one.clock == four.clock);
  RC_ASSERT(std::abs(one.power.value() - four.power.value()) < 1e-6);
  const ClockPoint both = at_clock(a + b, 0.8, device);
  const Energy apart = at_clock(a, 0.8, device).energy + at_clock(b, 0.8, device).energy;
  RC_ASSERT(std::abs(both.energy.value() - apart.value()) < 1e-6);
}

}  // namespace
}  // namespace orrery::compute
