// SPDX-License-Identifier: Apache-2.0
#include "calibrate/gemm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "machine/compute/compute_model.h"

namespace orrery::calibrate {
namespace {

using ::testing::HasSubstr;

machine::Machine plain_machine() {
  machine::Machine machine;
  machine.name = "plain";
  machine.device.name = "accelerator";
  machine.device.peak[static_cast<std::size_t>(graph::DataType::bf16)] = 400_TFLOPs;
  machine.device.peak[static_cast<std::size_t>(graph::DataType::fp8)] = 800_TFLOPs;
  machine.device.units = 100;
  machine.device.memory = {{"hbm", 80_GiB, Bandwidth(2e12), Time(0), {}}};
  return machine;
}

compute::KernelCoefficients known_coefficients() {
  compute::KernelCoefficients known;
  known.gemm_peak_share = 0.8;
  known.gemm_memory_share = 0.65;
  known.gemm_tile_load = 100;
  known.gemm_k_ramp = 300;
  known.gemm_wave_quantisation = 0.7;
  known.gemm_launch = 6_us;
  known.gemm_split_latency = 4_us;
  known.gemm_split_traffic = 0.9;
  return known;
}

/// Returns times of the model itself; `cast` is the conversion that they contain besides.
std::vector<GemmMeasurement> made_by(const compute::Device& device, const std::string& format,
                                     const GemmCast& cast = {}) {
  std::vector<GemmMeasurement> measured;
  for (const std::int64_t m : {1, 16, 100, 128, 300, 777, 1024, 2048, 5000, 16384}) {
    for (const std::int64_t n : {64, 512, 1024, 3072, 8192, 20000}) {
      for (const std::int64_t k : {64, 256, 1024, 4096, 16384}) {
        const graph::GemmShape shape{1, m, n, k};
        const Bytes moved = Bytes::from_double(cast.bytes * static_cast<double>(m * k));
        measured.push_back(
            {shape, compute::kernel_time(gemm_operator(format, shape), device).alone + cast.launch +
                        moved / device.memory[0].bandwidth});
      }
    }
  }
  return measured;
}

void expect_coefficients(const compute::KernelCoefficients& found,
                         const compute::KernelCoefficients& known) {
  EXPECT_NEAR(found.gemm_peak_share, known.gemm_peak_share, 0.01);
  EXPECT_NEAR(found.gemm_memory_share, known.gemm_memory_share, 0.01);
  EXPECT_NEAR(found.gemm_tile_load, known.gemm_tile_load, 5);
  EXPECT_NEAR(found.gemm_k_ramp, known.gemm_k_ramp, 10);
  EXPECT_NEAR(found.gemm_wave_quantisation, known.gemm_wave_quantisation, 0.03);
  EXPECT_NEAR(to_seconds(found.gemm_launch), to_seconds(known.gemm_launch), 0.1e-6);
  EXPECT_NEAR(to_seconds(found.gemm_split_latency), to_seconds(known.gemm_split_latency), 0.2e-6);
  EXPECT_NEAR(found.gemm_split_traffic, known.gemm_split_traffic, 0.05);
}

TEST(CalibrateGemm, TimesOfTheModelGiveItsCoefficientsBack) {
  const machine::Machine machine = plain_machine();
  compute::Device device = machine.device;
  device.kernels = known_coefficients();
  const GemmFit fit = fit_gemm("bf16", made_by(device, "bf16"), machine.device);
  expect_coefficients(fit.after, known_coefficients());
  EXPECT_LT(fit.held_out_after.mean, 0.005);
  EXPECT_GT(fit.held_out_before.mean, 0.1);
  EXPECT_EQ(fit.fitted_after.shapes + fit.held_out_after.shapes, 300U);
  EXPECT_GT(fit.held_out_after.shapes, 40U);
}

TEST(CalibrateGemm, AConversionInTheTimesIsToldApart) {
  // 3 us and 8 bytes per element of A; the launch of the GEMM itself is known.
  const machine::Machine machine = plain_machine();
  compute::Device device = machine.device;
  device.kernels = known_coefficients();
  device.kernels.gemm_launch = machine.device.kernels.gemm_launch;
  const GemmCast cast{3_us, 8};
  const GemmFit fit = fit_gemm("fp8", made_by(device, "fp8", cast), machine.device, true);
  EXPECT_NEAR(to_seconds(fit.cast.launch), 3e-6, 0.2e-6);
  EXPECT_NEAR(fit.cast.bytes, 8, 0.3);
  EXPECT_NEAR(fit.after.gemm_peak_share, 0.8, 0.02);
  EXPECT_EQ(fit.after.gemm_launch, machine.device.kernels.gemm_launch);
  EXPECT_LT(fit.held_out_after.mean, 0.01);
}

TEST(CalibrateGemm, EachFormatGetsItsOwnCoefficientsAndOrigins) {
  machine::Machine machine = plain_machine();
  compute::Device slow = machine.device;
  slow.kernels.gemm_peak_share = 0.5;
  const GemmTable table{{"bf16", made_by(machine.device, "bf16")}, {"fp8", made_by(slow, "fp8")}};
  const GemmCalibration result = calibrate_gemm(machine, table, "gemm.csv").value();
  EXPECT_NEAR(result.machine.device.kernels.gemm_peak_share, 0.9, 0.01);
  EXPECT_NEAR(result.machine.device.format_kernels.at("fp8").gemm_peak_share, 0.5, 0.01);
  EXPECT_EQ(result.machine.origins.at("device.kernels.fp8.gemm_peak_share"), "measured: gemm.csv");
  EXPECT_EQ(result.machine.origins.at("device.kernels.gemm_launch"), "measured: gemm.csv");
  EXPECT_EQ(result.machine.device.kernels.softmax_share, machine.device.kernels.softmax_share);
}

TEST(CalibrateGemm, AFormatThatTheMachineLacksIsRefused) {
  const GemmTable table{{"fp4", {{{1, 64, 64, 64}, 5_us}}}};
  const auto result = calibrate_gemm(plain_machine(), table, "gemm.csv");
  ASSERT_FALSE(result.has_value());
  EXPECT_THAT(result.error().to_string(), HasSubstr("device.peak: required to fit fp4 GEMMs"));
}

TEST(CalibrateGemm, TimesBeyondThePeakAreRefused) {
  // 2 x 4096^3 FLOPs in 1 ns: 1.4e20 FLOP/s.
  const GemmTable table{{"bf16", {{{1, 4096, 4096, 4096}, 1_ns}, {{1, 64, 64, 64}, 5_us}}}};
  const auto result = calibrate_gemm(plain_machine(), table, "gemm.csv");
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().mistakes.size(), 1U);
  EXPECT_THAT(result.error().to_string(),
              HasSubstr("gemm.csv: bf16 4096 x 4096 x 4096: found '1 ns', expected at least"));
}

TEST(CalibrateGemm, FewerShapesThanCoefficientsAreAWarning) {
  const GemmTable table{{"bf16", {{{1, 4096, 4096, 4096}, 1_ms}}}};
  const auto result = calibrate_gemm(plain_machine(), table, "gemm.csv");
  ASSERT_TRUE(result.has_value()) << result.error().to_string();
  ASSERT_EQ(result->warnings.size(), 1U);
  EXPECT_THAT(result->warnings[0], HasSubstr("1 shapes do not determine 8 coefficients"));
}

TEST(CalibrateGemm, OneMeasurementIsEnoughToMoveTheModel) {
  const std::vector<GemmMeasurement> one{{{1, 4096, 4096, 4096}, 1_ms}};
  const GemmFit fit = fit_gemm("bf16", one, plain_machine().device);
  EXPECT_LT(fit.fitted_after.mean, 0.01);
  EXPECT_EQ(fit.held_out_after.shapes, 0U);
}

GemmTable read(const std::string& text, const std::string& only = "") {
  auto table = read_gemm_table(parse_csv(text, "t.csv").value(), "bf16", only);
  EXPECT_TRUE(table.has_value()) << table.error().to_string();
  return table.value_or(GemmTable{});
}

std::string mistakes(const std::string& text, const std::string& only = "") {
  const auto table = read_gemm_table(parse_csv(text, "t.csv").value(), "bf16", only);
  EXPECT_FALSE(table.has_value());
  return table.has_value() ? "" : table.error().to_string();
}

TEST(GemmTable, RowsOfOneShapeAreTheirMedian) {
  const GemmTable table = read(
      "m,n,k,latency_us,dtype\n8,16,32,10,bfloat16\n8,16,32,4,bf16\n8,16,32,5,bfloat16\n"
      "8,16,32,2,fp8_block\n8,16,32,4,fp8_block\n");
  ASSERT_EQ(table.at("bf16").size(), 1U);
  EXPECT_EQ(table.at("bf16")[0].time, 5_us);
  EXPECT_EQ(table.at("bf16")[0].shape, (graph::GemmShape{1, 8, 16, 32}));
  EXPECT_EQ(table.at("fp8_block")[0].time, 3_us);
}

TEST(GemmTable, BatchAndTypeAreOptional) {
  EXPECT_EQ(read("m,n,k,latency_us,batch\n8,16,32,10,7\n").at("bf16")[0].shape.batch, 7);
  EXPECT_EQ(read("k,m,n,latency_us\n32,8,16,10\n").at("bf16")[0].shape,
            (graph::GemmShape{1, 8, 16, 32}));
  EXPECT_FALSE(read("m,n,k,latency_us,dtype\n8,8,8,1,fp8\n8,8,8,1,bf16\n", "fp8").contains("bf16"));
}

TEST(GemmTable, TheTypeAskedForMustBeKnown) {
  EXPECT_THAT(mistakes("m,n,k,latency_us\n1,1,1,1\n", "fp8_blok"),
              HasSubstr("did you mean 'fp8_block'?"));
  EXPECT_EQ(read("m,n,k,latency_us,dtype\n1,1,1,1,bf16\n", "bfloat16").size(), 1U);
}

TEST(GemmTable, EveryMistakeNamesItsLine) {
  const std::string text = mistakes(
      "m,n,k,latency_us,dtype\n0,1,1,1,bf16\n1,-3,1,1,bf16\n1,1,1.5,1,bf16\n1,1,1,0,bf16\n"
      "1,1,1,nan,bf16\n1,1,1,1,bf61\n99999999999999999999,1,1,1,bf16\n1,1,1,,bf16\n");
  EXPECT_THAT(text, HasSubstr("t.csv:2: m: found '0', expected a whole number from 1"));
  EXPECT_THAT(text, HasSubstr("t.csv:3: n: found '-3'"));
  EXPECT_THAT(text, HasSubstr("t.csv:4: k: found '1.5'"));
  EXPECT_THAT(text, HasSubstr("t.csv:5: latency_us: found '0', expected a time in microseconds"));
  EXPECT_THAT(text, HasSubstr("t.csv:6: latency_us: found 'nan'"));
  EXPECT_THAT(text, HasSubstr("t.csv:7: dtype: found 'bf61'"));
  EXPECT_THAT(text, HasSubstr("did you mean 'bf16'?"));
  EXPECT_THAT(text, HasSubstr("t.csv:8: m: found '99999999999999999999'"));
  EXPECT_THAT(text, HasSubstr("t.csv:9: latency_us"));
}

TEST(GemmTable, ColumnsAreKnownOnes) {
  const std::string text = mistakes("m,n,K,latency_ms\n1,1,1,1\n");
  EXPECT_THAT(text, HasSubstr("column 'k' is missing"));
  EXPECT_THAT(text, HasSubstr("column 'latency_us' is missing"));
  EXPECT_THAT(text, HasSubstr("latency_ms: unknown column"));
  EXPECT_THAT(text, HasSubstr("did you mean 'latency_us'?"));
}

TEST(GemmTable, AFileOfOnlyMistakesIsCutShort) {
  std::string text = "m,n,k,latency_us\n";
  for (int i = 0; i < 100; ++i) {
    text += "x,1,1,1\n";
  }
  EXPECT_THAT(mistakes(text), HasSubstr("and 80 more"));
}

TEST(GemmTable, NoRowsAreAMistake) {
  EXPECT_THAT(mistakes("m,n,k,latency_us\n"), HasSubstr("no rows"));
  EXPECT_THAT(mistakes("m,n,k,latency_us,dtype\n1,1,1,1,bf16\n", "fp8"),
              HasSubstr("no rows of fp8"));
}

}  // namespace
}  // namespace orrery::calibrate
