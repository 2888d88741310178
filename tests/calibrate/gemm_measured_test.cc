// SPDX-License-Identifier: Apache-2.0
/// The shipped kernel coefficients against measured GEMMs of ai-dynamo/aiconfigurator@095f58a51c4c
/// (Apache-2.0). gemm_measured.csv: of each device and format the 60 shapes of the public table
/// whose SHA-256 of "sample,m,n,k" comes first; bf16: median over software versions, others:
/// TensorRT-LLM 1.3.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "calibrate/gemm.h"

namespace orrery::calibrate {
namespace {

struct Bound {
  std::string device, machine, format;
  /// What the measured times of 8-bit formats contain besides; from the same fit (--cast).
  GemmCast cast;
  double median, mean;
};

std::vector<GemmMeasurement> sample(const std::string& device, const std::string& format) {
  CsvTable csv =
      load_csv(std::string(ORRERY_SOURCE_DIR) + "/tests/calibrate/gemm_measured.csv").value();
  std::erase_if(csv.rows, [&](const CsvRow& row) { return row.cells[0] != device; });
  return read_gemm_table(csv, "", format).value().at(format);
}

TEST(GemmMeasured, ShippedCoefficientsPredictKernelsOfEachDeviceAndFormat) {
  const std::vector<Bound> bounds{
      {"a100", "dgx-a100-80g", "bf16", {}, 0.07, 0.10},
      {"h100", "dgx-h100", "bf16", {}, 0.07, 0.10},
      {"h200", "dgx-h200", "bf16", {}, 0.07, 0.10},
      {"h100", "dgx-h100", "fp8", {10'030_ns, 7.96}, 0.06, 0.08},
      {"h200", "dgx-h200", "fp8", {9'676_ns, 9.75}, 0.06, 0.08},
      {"h100", "dgx-h100", "fp8_block", {1'400_ns, 5.56}, 0.10, 0.15},
      {"h200", "dgx-h200", "fp8_block", {1'338_ns, 7.85}, 0.10, 0.15},
  };
  for (const Bound& bound : bounds) {
    const compute::Device device = machine::load_machine(bound.machine).value().device;
    const auto measured = sample(bound.device, bound.format);
    const GemmError error = gemm_error(bound.format, measured, device, bound.cast);
    EXPECT_EQ(error.shapes, 60U);
    EXPECT_LE(error.median, bound.median) << bound.device << " " << bound.format;
    EXPECT_LE(error.mean, bound.mean) << bound.device << " " << bound.format;
    fmt::print("{:5} {:10} median {:.1f} %  mean {:.1f} %\n", bound.device, bound.format,
               100 * error.median, 100 * error.mean);
  }
}

TEST(GemmMeasured, CoefficientsOfOneDeviceHoldOnItsSisterWithItsOwnBandwidth) {
  // H200 is H100 with other memory: 4.8 for 3.35 TB/s is all that changes.
  compute::Device device = machine::load_machine("dgx-h100").value().device;
  const auto measured = sample("h200", "bf16");
  EXPECT_GT(gemm_error("bf16", measured, device).mean, 0.10);
  device.memory[0].bandwidth = Bandwidth(4.8e12);
  EXPECT_LE(gemm_error("bf16", measured, device).mean, 0.10);
}

}  // namespace
}  // namespace orrery::calibrate
