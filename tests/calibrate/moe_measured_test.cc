// SPDX-License-Identifier: Apache-2.0
/// The shipped coefficients of grouped GEMMs and moves of rows against measured MoE layers of
/// ai-dynamo/aiconfigurator@095f58a51c4c (Apache-2.0), TensorRT-LLM 1.3, cutlass kernels.
/// moe_measured.csv: of each device and format the 60 rows of the public table whose SHA-256 of
/// "sample,num_tokens,hidden_size,inter_size,topk,num_experts,moe_tp_size,moe_ep_size,distribution"
/// comes first.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/csv.h"
#include "base/reader.h"
#include "machine/machine.h"
#include "study/kernels.h"

namespace orrery::study {
namespace {

double median_moe_error(const std::string& device_name, const std::string& type,
                        const std::string& machine_name, const CsvTable& table) {
  CsvTable rows = table;
  std::erase_if(rows.rows, [&](const CsvRow& row) {
    return row.cells[0] != device_name || row.cells[1] != type;
  });
  if (rows.rows.empty()) {
    return 0;  // Hopper has no nvfp4
  }
  const auto queries = read_queries<MoeQuery>(rows).value();
  const std::size_t latency = *rows.column("latency_us");
  const compute::Device device = machine::load_machine(machine_name).value().device;
  std::vector<double> errors;
  for (std::size_t i = 0; i < queries.size(); ++i) {
    const KernelRow row = time_kernels(kernels_of(queries[i], device, "").value(), device);
    const double seconds = 1e-6 * parse_number(rows.rows[i].cells[latency]).value();
    errors.push_back(std::abs(to_seconds(row.time) / seconds - 1));
  }
  const auto middle = errors.begin() + static_cast<std::ptrdiff_t>(errors.size() / 2);
  std::nth_element(errors.begin(), middle, errors.end());
  return *middle;
}

TEST(MoeMeasured, ShippedCoefficientsPredictLayersOfEachDeviceAndFormat) {
  const auto table =
      load_csv(std::string(ORRERY_SOURCE_DIR) + "/tests/calibrate/moe_measured.csv").value();
  const std::vector<std::pair<std::string, std::string>> machines{
      {"h100", "dgx-h100"}, {"h200", "dgx-h200"},     {"b200", "dgx-b200"},
      {"b300", "dgx-b300"}, {"gb200", "gb200-nvl72"}, {"gb300", "gb300-nvl72"}};
  for (const auto& [device, machine] : machines) {
    for (const char* type : {"bf16", "fp8", "nvfp4"}) {
      const double error = median_moe_error(device, type, machine, table);
      EXPECT_LE(error, 0.2) << device << " " << type;
      fmt::print("{:6} {:6} MoE median {:.1f} %\n", device, type, 100 * error);
    }
  }
}

}  // namespace
}  // namespace orrery::study
