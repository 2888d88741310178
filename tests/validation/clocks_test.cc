// SPDX-License-Identifier: Apache-2.0
// Clocks of cards under their power caps against those that make published runs come out: the
// factor on the kernel tables' rate at which the mean error of a card's rows is zero (training in
// fp8 and bf16 of NVIDIA-NeMo/Megatron-Bridge performance summaries,
// mlcommons/training_results_v5.0 and v5.1, MooreThreads/SimuMax v1.2). No constant of the power
// model is fitted to them; B200's energy per FLOP is that of loops of products.
#include <gtest/gtest.h>

#include <cmath>

#include "machine/compute/clock.h"
#include "machine/machine.h"

namespace orrery {
namespace {

struct Card {
  const char* name;
  const char* machine;
  double power;       ///< W
  double gemm_power;  ///< W
  double bandwidth;   ///< TB/s
  double low;         ///< clocks of published runs
  double high;
};
constexpr Card kCards[] = {{"B200 fp8", "dgx-b200", 1000, 2150, 8, 0.75, 0.82},
                           {"GB200 fp8", "gb200-nvl72", 1200, 2256, 8, 0.84, 0.90},
                           {"B300", "dgx-b300", 1100, 1740, 8, 0.81, 0.81},
                           {"MI300X", "mi300x", 750, 1520, 5.3, 0.60, 0.66},
                           {"MI325X", "mi325x", 1000, 1520, 6.0, 0.73, 0.82},
                           {"MI350X", "mi350x", 1000, 1780, 8, 0.70, 0.77},
                           {"MI355X", "mi355x", 1400, 2090, 8, 0.79, 0.89}};

double clock_of(const Card& card) {
  compute::Device device = machine::load_machine(card.machine)->device;
  device.power = Power(card.power);
  device.idle_power = Power(0.173 * card.power);
  device.power_model.busy_power = Power(0.12 * card.power);
  device.power_model.gemm_power = Power(card.gemm_power);
  device.power_model.attention_power = Power(card.gemm_power * 1130 / 1003);
  device.memory.front().bandwidth = Bandwidth(card.bandwidth * 1e12);
  compute::set_usual_clock(device);
  return device.clock;
}

TEST(PublishedClocks, FollowFromPowerAndNotFromAnotherCard) {
  constexpr double kOfHopper = 0.929;
  double by_power = 0;
  double carried_over = 0;
  for (const Card& card : kCards) {
    const double middle = (card.low + card.high) / 2;
    const double clock = clock_of(card);
    by_power += std::abs(clock / middle - 1) / std::size(kCards);
    carried_over += std::abs(kOfHopper / middle - 1) / std::size(kCards);
    EXPECT_NEAR(clock / middle, 1, 0.18) << card.name;
  }
  // B200 and GB200 have the energy per FLOP of bf16 loops, with which fp8 comes out 9 to 12 % low.
  EXPECT_LT(by_power, 0.09);
  EXPECT_GT(carried_over, 0.17);
}

TEST(PublishedClocks, OfShippedMachinesAreThose) {
  for (const Card& card : kCards) {
    const machine::Machine machine = machine::load_machine(card.machine).value();
    if (machine.device.power == Power(card.power)) {
      EXPECT_NEAR(machine.device.clock, clock_of(card), 0.005) << card.name;
    }
  }
}

/// One H200, 700 W: clock and power of kernels in loops, mean of 50 ms samples (PyTorch 2.11).
TEST(PublishedClocks, OfLoopsOfKernelsOnOneH200) {
  const compute::Device device = machine::load_machine("dgx-h200")->device;
  // 8192^3 in bf16: 667.5 TFLOP/s, 1,485 MHz of 1,980, 692 W.
  graph::Operator product{
      .name = {}, .kind = graph::OperatorKind::gemm, .gemm = {1, 8192, 8192, 8192}};
  product.flops = graph::flops_of(product.gemm);
  const compute::ClockPoint loop = compute::at_own_clock(compute::load_of(product, device), device);
  EXPECT_NEAR(loop.clock * 1980, 1485, 0.05 * 1485);
  EXPECT_NEAR(loop.power.value(), 692, 0.02 * 692);
  EXPECT_NEAR(to_seconds(loop.time), 1647e-6, 0.08 * 1647e-6);
  // A copy of 2 GiB: 4.26 TB/s, full clock, 610 W.
  graph::Operator copy{.name = {}, .kind = graph::OperatorKind::elementwise, .gemm = {}};
  copy.bytes = Bytes(2'147'483'648);
  const compute::ClockPoint copies = compute::at_own_clock(compute::load_of(copy, device), device);
  EXPECT_EQ(copies.clock, 1);
  EXPECT_NEAR(copies.power.value(), 610, 0.05 * 610);
  // A matrix times a vector, 939 MB: 4.06 TB/s, 600 W.
  graph::Operator vector{
      .name = {}, .kind = graph::OperatorKind::gemm, .gemm = {1, 1, 28672, 16384}};
  vector.flops = graph::flops_of(vector.gemm);
  const compute::ClockPoint gemv = compute::at_own_clock(compute::load_of(vector, device), device);
  EXPECT_EQ(gemv.clock, 1);
  EXPECT_NEAR(gemv.power.value(), 600, 0.08 * 600);
}

/// Products on one B200 at 1,000 W, each in a row by itself (MooreThreads/SimuMax v1.2, Transformer
/// Engine's general_gemm): 473 us in a burst; loops of 1.7 and 3.5 ms at 0.494 and 0.487 of peak.
TEST(PublishedClocks, OfLoopsOfProductsOnOneB200) {
  const compute::Device device = machine::load_machine("dgx-b200")->device;
  const auto loop = [&](std::int64_t n) {
    graph::Operator product{
        .name = {}, .kind = graph::OperatorKind::gemm, .gemm = {1, 4096, n, 8192}};
    product.flops = graph::flops_of(product.gemm);
    return compute::at_own_clock(compute::load_of(product, device), device);
  };
  EXPECT_NEAR(to_seconds(loop(28672).time), 1730e-6, 0.03 * 1730e-6);
  EXPECT_NEAR(to_seconds(loop(57344).time), 3514e-6, 0.03 * 3514e-6);
  // The rate left of the burst: 0.487 / 0.645.
  EXPECT_NEAR(loop(57344).rate, 0.755, 0.03);
}

}  // namespace
}  // namespace orrery
