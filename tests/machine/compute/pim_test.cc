// SPDX-License-Identifier: Apache-2.0
/// Laws of products in DRAM banks.
#include "machine/compute/pim.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "dram_trace.h"
#include "machine/compute/compute_model.h"
#include "machine/compute/dram.h"

namespace orrery::compute {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// 8 channels x 16 banks x 16 lanes at 1 GHz, rows of 1,024 bf16, 32 B/ns a channel.
Device pim_gpt() {
  Device device;
  device.model = ComputeModel::pim;
  device.peak[static_cast<std::size_t>(graph::DataType::bf16)] = FlopRate(4.096e12);
  device.memory = {{.name = "m", .capacity = 4_GiB, .bandwidth = 256_GBps}};
  device.pim.channels = 8;
  device.pim.banks = 16;
  device.pim.lanes = 16;
  device.pim.row = 2_KiB;
  device.pim.t_rcd = 12_ns;
  device.pim.t_rp = 12_ns;
  device.pim.t_rfc = 455_ns;
  device.pim.t_refi = 6825_ns;
  device.pim.vector_lanes = 128;
  device.pim.vector_cycle = 1_ns;
  device.pim.norm_cycles = 8;
  device.pim.softmax_cycles = 6;
  device.pim.elementwise_cycles = 6;
  return device;
}

Rates rates_of(const Device& device) {
  return rates_of(graph::Operator(), device, device.clock);
}

double product_ns(const Device& device, double k, double n) {
  return 1e9 *
         pim_product({.inputs = k, .outputs = n, .macs = k * n}, 2, rates_of(device), device.pim)
             .seconds();
}

graph::Operator gemv_on_pim(std::int64_t m, std::int64_t n, std::int64_t k) {
  graph::Operator op;
  op.kind = graph::OperatorKind::gemm;
  op.gemm = {.batch = 1, .m = m, .n = n, .k = k};
  return op;
}

TEST(Pim, AFullRowIsSixtyFourColumnsInEightyEightNanoseconds) {
  // 2 KB of bf16 are 1,024 elements, 64 columns of 16: 12 + 64 + 12 ns.
  EXPECT_EQ(row_time(pim_gpt().pim, 1_ns, 64), 88_ns);
  const PimCost cost = pim_product({.inputs = 0, .outputs = 0, .macs = 128 * 1024}, 2,
                                   rates_of(pim_gpt()), pim_gpt().pim);
  EXPECT_EQ(cost.activates, 1);
  EXPECT_EQ(cost.columns, 64);
  EXPECT_NEAR(cost.row_seconds, 88e-9, 1e-18);
}

TEST(Pim, RefreshTakesItsShareOfEverything) {
  // 1 / (1 - 455 / 6825) = 1.0714
  Device device = pim_gpt();
  const PimCost with = pim_cost(gemv_on_pim(1, 768, 768), rates_of(device), device);
  EXPECT_NEAR(with.refresh, 1.0 / (1 - 455.0 / 6825.0), 1e-12);
  EXPECT_NEAR(with.refresh, 1.0714, 1e-4);
  device.pim.t_refi = Time(0);
  EXPECT_EQ(pim_cost(gemv_on_pim(1, 768, 768), rates_of(device), device).refresh, 1);
}

TEST(Pim, WithoutRowsRefreshAndInterfaceTheTimeIsThatOfTheMultipliers) {
  Device device = pim_gpt();
  device.pim.t_rcd = device.pim.t_rp = device.pim.t_refi = Time(0);
  device.memory.front().bandwidth = Bandwidth(1e18);
  // 4,096 x 4,096 weights over 2,048 multipliers: 8,192 ns.
  EXPECT_EQ(kernel_time(gemv_on_pim(1, 4096, 4096), device).alone, 8192_ns);
}

TEST(Pim, ARowOfTheBatchTakesAsLongAsTheFirst) {
  const Device device = pim_gpt();
  const Time one = kernel_time(gemv_on_pim(1, 3072, 1024), device).alone;
  EXPECT_NEAR(kernel_time(gemv_on_pim(8, 3072, 1024), device).alone / one, 8, 1e-6);
}

TEST(Pim, AttentionOfOneQueryIsLinearInItsKeys) {
  const Device device = pim_gpt();
  const auto time = [&](std::int64_t keys) {
    graph::Operator op;
    op.kind = graph::OperatorKind::attention;
    op.gemm = {.batch = 12, .m = 1, .n = keys, .k = 64};
    op.flops = Flops(4.0 * 12 * 64 * static_cast<double>(keys));
    return to_seconds(kernel_time(op, device).alone);
  };
  // 128 banks x 1,024 elements are 170.7 keys of 768: 512 keys are three rows exactly.
  EXPECT_NEAR(time(2048) - time(1536), time(1024) - time(512), 1e-12);
}

/// Shapes of PIM-GPT's models and what the reference model of the paper's mechanism says for the
/// mean of 1,024 tokens (derived; timings recalled).
struct PublishedModel {
  const char* name;
  double layers;
  double hidden;
  double heads;
  double us_per_token;
  double mac_bound_us;
  double without_head_us;
};
constexpr std::array<PublishedModel, 6> kModels{{{"GPT2-small", 12, 768, 12, 110.0, 60.3, 81.8},
                                                 {"GPT2-medium", 24, 1024, 16, 308.5, 172.6, 270.9},
                                                 {"GPT2-large", 36, 1280, 20, 656.6, 377.0, 609.8},
                                                 {"GPT2-XL", 48, 1600, 25, 1287.5, 759.3, 1229.1},
                                                 {"GPT3-large", 24, 1536, 16, 619.3, 369.5, 563.3},
                                                 {"GPT3-XL", 24, 2048, 24, 1043.9, 640.1, 969.3}}};

/// One output per key, two norms and a GELU on the chip, keys and values written at once.
double reference_us(const Device& device, const PublishedModel& model, bool head) {
  const double d = model.hidden;
  const double fixed = product_ns(device, d, 3 * d) + product_ns(device, d, d) +
                       product_ns(device, d, 4 * d) + product_ns(device, 4 * d, d) +
                       2 * d / 128 * 8 + 4 * d / 128 * 6 + 4 * d / 256 + 24;
  double sum = 0;
  for (int tokens = 0; tokens < 1024; ++tokens) {
    const double context = tokens;
    const double seen = product_ns(device, d, context) + product_ns(device, context, d) +
                        model.heads * context / 128 * 6;
    sum += model.layers * (fixed + seen) + (head ? product_ns(device, d, 50257) : 0);
  }
  return sum / 1024 / (1 - 455.0 / 6825.0) / 1000;
}

TEST(Pim, TheReferenceTimesPerTokenComeOut) {
  const Device device = pim_gpt();
  for (const PublishedModel& model : kModels) {
    EXPECT_NEAR(reference_us(device, model, true) / model.us_per_token, 1, 0.002) << model.name;
    EXPECT_NEAR(reference_us(device, model, false) / model.without_head_us, 1, 0.002) << model.name;
    const double bound =
        (12 * model.layers * model.hidden * model.hidden + 50257 * model.hidden) / 2048 / 1000;
    EXPECT_NEAR(bound / model.mac_bound_us, 1, 0.002) << model.name;
    EXPECT_GT(reference_us(device, model, true), bound) << model.name;
  }
}

TEST(Pim, EnergyIsThatOfItsParts) {
  Device device = pim_gpt();
  device.pim.t_refi = Time(0);
  device.pim.mac_energy = Energy(0.5e-12);
  device.pim.activate_energy = Energy(1000e-12);
  device.pim.array_energy = EnergyPerByte(10e-12);
  device.pim.vector_power = Power(0.5);
  device.memory.front().energy_per_byte = EnergyPerByte(40e-12);
  const PimCost cost = pim_cost(gemv_on_pim(1, 128, 1024), rates_of(device), device);
  // 131,072 MACs: one row of 128 banks; 1,024 inputs to 8 channels and 128 outputs, 2 bytes each;
  // 88 ns of row, 2 x (8,192 + 128) / 256 = 65 ns of interface.
  const double expected =
      131072 * (0.5e-12 + 20e-12) + 128 * 1000e-12 + 16640 * 40e-12 + 0.5 * (88e-9 + 65e-9);
  EXPECT_NEAR(pim_energy(cost, 2, device).value() / expected, 1, 1e-9);
}

TEST(Dram, BanksInTurnWaitForFourActivates) {
  // 16 banks, t_rrd 4, t_faw 20: ACTs at 0 4 8 12, 20 24 28 32, 40 .., 60 64 68 72.
  PimDevice device = pim_gpt().pim;
  device.t_rrd = 4_ns;
  device.t_faw = 20_ns;
  EXPECT_EQ(activate_spread(device), 0_ns);
  device.banks_in_turn = true;
  EXPECT_EQ(activate_spread(device), 72_ns);
  EXPECT_EQ(row_time(device, 1_ns, 64), 72_ns + 88_ns);
}

TEST(Dram, ATraceThatBreaksATimingIsFound) {
  PimDevice device = pim_gpt().pim;
  device.t_ras = 30_ns;
  using enum DramCommand;
  const auto broken = [&](const std::vector<IssuedCommand>& trace) {
    return broken_timings(trace, device, 1_ns);
  };
  EXPECT_THAT(broken({{activate, kAllBanks, 0_ns}, {multiply, kAllBanks, 12_ns}}), IsEmpty());
  EXPECT_THAT(broken({{activate, kAllBanks, 0_ns}, {multiply, kAllBanks, 11_ns}}),
              ::testing::ElementsAre(HasSubstr("not before 12 ns")));
  EXPECT_EQ(broken({{activate, kAllBanks, 0_ns}, {precharge, kAllBanks, 29_ns}}).size(), 1U);
  EXPECT_EQ(broken({{activate, kAllBanks, 0_ns},
                    {multiply, kAllBanks, 12_ns},
                    {multiply, kAllBanks, Time(12'500)}})
                .size(),
            1U);
  device.banks_in_turn = true;
  EXPECT_THAT(broken({{activate, kAllBanks, 0_ns}}),
              ::testing::ElementsAre(HasSubstr("t_faw allows four")));
}

RC_GTEST_PROP(Dram, CommandsKeepTheTimingsAndTakeTheClosedForm, ()) {
  PimDevice device = pim_gpt().pim;
  const auto some = [](int most) { return Time(1000 * *rc::gen::inRange(0, most)); };
  device.t_rcd = some(40);
  device.t_rp = some(40);
  device.t_ras = some(80);
  device.t_rrd = some(8);
  device.t_faw = device.t_rrd * 4 + some(20);
  device.banks_in_turn = *rc::gen::arbitrary<bool>();
  const Time column = Time(*rc::gen::inRange(500, 2000));
  const std::int64_t per_row = *rc::gen::inRange(1, 80);
  const std::int64_t columns = *rc::gen::inRange(1, 300);
  // Without refresh: full rows and the rest, as long as a row outlasts the window of its activates.
  device.t_refi = Time(0);
  const auto trace = dram_commands(device, column, columns, per_row);
  RC_ASSERT(broken_timings(trace, device, column).empty());
  const std::int64_t full = (columns - 1) / per_row;
  const Time expected =
      row_time(device, column, per_row) * full + row_time(device, column, columns - full * per_row);
  if (!device.banks_in_turn || device.t_rcd + device.t_rp + column >= device.t_faw) {
    RC_ASSERT(trace.back().at + device.t_rp == expected);
  } else {
    RC_ASSERT(trace.back().at + device.t_rp >= expected);
  }
  // With it, longer, and by the factor of the closed form in the long run.
  device.t_rfc = 455_ns;
  device.t_refi = 6825_ns;
  const auto refreshed = dram_commands(device, column, 100 * columns, per_row);
  RC_ASSERT(broken_timings(refreshed, device, column).empty());
}

TEST(Dram, RefreshesTakeTheirShareInTheLongRun) {
  // 10,000 rows of 88 ns: 880 us, 1.0714 times that within a refresh, its precharge and a row.
  const PimDevice device = pim_gpt().pim;
  const auto trace = dram_commands(device, 1_ns, 640'000, 64);
  const double ns = 1e9 * to_seconds(trace.back().at + device.t_rp);
  EXPECT_NEAR(ns, 880'000 / (1 - 455.0 / 6825.0), 600);
  EXPECT_THAT(broken_timings(trace, device, 1_ns), IsEmpty());
}

}  // namespace
}  // namespace orrery::compute
