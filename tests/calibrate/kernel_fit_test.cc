// SPDX-License-Identifier: Apache-2.0
#include "calibrate/kernel_fit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/csv.h"
#include "base/reader.h"
#include "machine/machine.h"
#include "study/kernels.h"

namespace orrery::calibrate {
namespace {

using ::testing::HasSubstr;

/// The queries and what `device` takes for them, as if it had been measured.
template <class Query>
std::vector<KernelMeasurement> measured_on(const compute::Device& device,
                                           const std::vector<Query>& queries) {
  std::vector<KernelMeasurement> rows;
  for (const Query& query : queries) {
    auto kernels = study::kernels_of(query, device, "").value();
    const Time time = study::time_kernels(kernels, device).time;
    rows.push_back({std::move(kernels), time});
  }
  return rows;
}

std::vector<study::AttentionQuery> prompts(graph::AttentionLibrary library) {
  std::vector<study::AttentionQuery> queries;
  for (const std::int64_t head_dim : {64, 128}) {
    for (const std::int64_t length : {512, 1024, 2048, 4096, 8192}) {
      for (const std::int64_t batch : {1, 2, 8}) {
        queries.push_back({.batch = batch,
                           .heads = 16,
                           .head_dim = head_dim,
                           .queries = length,
                           .cache = false,
                           .library = library});
      }
    }
  }
  return queries;
}

/// A device whose cuDNN attention is as stated makes a table; from the shipped coefficients the fit
/// finds times within 1 % of it (coefficients trade against each other, so times are compared).
TEST(KernelFit, FindsTheAttentionThatMadeATable) {
  const machine::Machine shipped = machine::load_machine("dgx-h100").value();
  machine::Machine other = shipped;
  auto& made = other.device.format_kernels.at("attention_cudnn");
  made.attention_share = 0.55;
  made.attention_softmax = 600;
  made.attention_key_ramp = 90;
  made.attention_launch = from_seconds(9e-6);
  const auto rows = measured_on(other.device, prompts(graph::AttentionLibrary::cudnn));
  const KernelCalibration fitted = calibrate_attention(shipped, rows, "table.csv").value();
  ASSERT_EQ(fitted.fits.size(), 1U);
  const KernelFit& fit = fitted.fits.front();
  EXPECT_EQ(fit.set, "attention_cudnn");
  EXPECT_GT(fit.fitted_before.mean, 0.1);
  EXPECT_LT(fit.fitted_after.mean, 0.01);
  EXPECT_EQ(fitted.machine.origins.at("device.kernels.attention_cudnn.attention_share"),
            "measured: table.csv");
  // Everything else of the device stays.
  EXPECT_EQ(fitted.machine.device.kernels, shipped.device.kernels);
}

TEST(KernelFit, FindsTheExpertsThatMadeATable) {
  const machine::Machine shipped = machine::load_machine("dgx-h100").value();
  machine::Machine other = shipped;
  other.device.kernels.grouped_k_ramp = 900;
  other.device.kernels.grouped_launch = from_seconds(15e-6);
  other.device.kernels.permute_share = 0.25;
  std::vector<study::MoeQuery> queries;
  for (const std::int64_t tokens : {16, 128, 512, 2048, 8192}) {
    for (const std::int64_t experts : {8, 64}) {
      queries.push_back({.num_tokens = tokens,
                         .hidden_size = 4096,
                         .inter_size = 2048,
                         .topk = 2,
                         .num_experts = experts});
    }
  }
  const KernelCalibration fitted =
      calibrate_moe(shipped, measured_on(other.device, queries), "moe.csv").value();
  ASSERT_EQ(fitted.fits.size(), 1U);
  EXPECT_EQ(fitted.fits.front().set, "");
  EXPECT_GT(fitted.fits.front().fitted_before.mean, 0.1);
  EXPECT_LT(fitted.fits.front().fitted_after.mean, 0.01);
  EXPECT_NEAR(fitted.machine.device.kernels.permute_share, 0.25, 0.01);
}

/// Rows of H100 in tests/calibrate/pytorch: on a quarter that it has not seen, a fit that begins
/// with another card's coefficients is better than these are, for each set.
TEST(KernelFit, HelpsOnMeasuredRowsThatItHasNotSeen) {
  CsvTable table =
      load_csv(std::string(ORRERY_SOURCE_DIR) + "/tests/calibrate/pytorch/attention.csv").value();
  std::erase_if(table.rows, [](const CsvRow& row) { return row.cells[0] != "h100"; });
  machine::Machine start = machine::load_machine("dgx-h100").value();
  std::erase_if(start.device.format_kernels,
                [](const auto& set) { return set.first.starts_with("attention_"); });
  const auto queries = study::read_queries<study::AttentionQuery>(table).value();
  const std::size_t latency = *table.column("latency_us");
  std::vector<KernelMeasurement> rows;
  for (std::size_t i = 0; i < queries.size(); ++i) {
    rows.push_back({study::kernels_of(queries[i], start.device, "").value(),
                    from_seconds(1e-6 * parse_number(table.rows[i].cells[latency]).value())});
  }
  const KernelCalibration fitted = calibrate_attention(start, rows, "attention.csv").value();
  EXPECT_GE(fitted.fits.size(), 4U);
  for (const KernelFit& fit : fitted.fits) {
    if (fit.held_out_before.shapes > 10) {
      EXPECT_LT(fit.held_out_after.median, 0.15) << fit.set;
      EXPECT_LT(fit.held_out_after.median, fit.held_out_before.median) << fit.set;
    }
  }
}

/// grouped.csv of the H100, equal and unequal loads: products alone tell k_ramp and launch, nothing
/// of permutations; the quarter that was not seen becomes better.
TEST(KernelFit, GroupedProductsAloneTellTwoCoefficients) {
  const CsvTable table =
      load_csv(std::string(ORRERY_SOURCE_DIR) + "/tests/calibrate/pytorch/grouped.csv").value();
  machine::Machine start = machine::load_machine("dgx-h100").value();
  start.device.kernels.grouped_k_ramp = 2000;
  start.device.kernels.grouped_launch = from_seconds(30e-6);
  const auto rows = read_grouped(table);
  ASSERT_TRUE(rows.has_value()) << rows.error().to_string();
  EXPECT_EQ(rows->size(), table.rows.size());
  const KernelCalibration fitted = calibrate_moe(start, *rows, "grouped.csv").value();
  ASSERT_EQ(fitted.fits.size(), 1U);
  const KernelFit& fit = fitted.fits.front();
  EXPECT_EQ(fit.coefficients.size(), 2U);
  EXPECT_LT(fit.held_out_after.median, 0.1);
  EXPECT_LT(fit.held_out_after.median, 0.7 * fit.held_out_before.median);
  EXPECT_EQ(fitted.machine.device.kernels.permute_share, start.device.kernels.permute_share);
  EXPECT_FALSE(fitted.machine.origins.at("device.kernels.grouped_launch").empty());
}

// Loads 3, 0 and 2: two experts of 3 rows (2.5, rounded up), as `orrery moe` shares rows.
TEST(KernelFit, ReadsGroupedProductsRowByRow) {
  const auto rows = read_grouped(
      parse_csv("dtype,experts,m,n,k,loads,latency_us\nfp8,8,4,64,32,,7.5\nbf16,3,,64,32,3 0 2,9\n",
                "g.csv")
          .value());
  ASSERT_TRUE(rows.has_value()) << rows.error().to_string();
  const graph::Operator& equal = rows->at(0).kernels.front();
  EXPECT_EQ(equal.kind, graph::OperatorKind::grouped_gemm);
  EXPECT_EQ(equal.type, graph::DataType::fp8);
  EXPECT_EQ(equal.gemm, (graph::GemmShape{8, 4, 64, 32}));
  EXPECT_EQ(rows->at(0).time, from_seconds(7.5e-6));
  EXPECT_EQ(rows->at(1).kernels.front().gemm, (graph::GemmShape{2, 3, 64, 32}));
  const auto wrong = read_grouped(parse_csv("dtype,experts,m,n,k,loads,latency_us\n"
                                            "fp9,0,4,64,32,,7.5\nbf16,3,1,64,32,0 0,0\n"
                                            "bf16,3,1,64,32,1 x,2\nbf16,3,,64,32,,2\n",
                                            "g.csv")
                                      .value());
  for (const char* const part :
       {"g.csv:2: dtype: found 'fp9'", "g.csv:2: experts: found '0'", "g.csv:3: latency_us",
        "g.csv:4: loads: found '1 x'", "g.csv:5: m: missing; expected a whole number from 1"}) {
    EXPECT_THAT(wrong.error().to_string(), HasSubstr(part));
  }
  const auto odd = read_grouped(parse_csv("dtyp,experts,m,n,k,loads,latency_us\n"
                                          "bf16,8,,64,32,3 0 2,9\n"
                                          "bf16,8,1,9000000000,32,,9\n",
                                          "g.csv")
                                    .value());
  for (const char* const part :
       {"g.csv:1: dtyp: unknown column (did you mean 'dtype'?)",
        "g.csv:2: loads: found '3 0 2', expected one for each of 8 experts",
        "g.csv:3: n: found '9000000000', expected a whole number from 1 to 1000000000"}) {
    EXPECT_THAT(odd.error().to_string(), HasSubstr(part));
  }
  const auto none = read_grouped(parse_csv("experts,m,n,k,latency_us\n", "g.csv").value());
  ASSERT_FALSE(none.has_value());
  EXPECT_THAT(none.error().to_string(), HasSubstr("g.csv: no rows"));
  const auto lacking = read_grouped(parse_csv("m,n\n1,2\n", "g.csv").value());
  EXPECT_THAT(lacking.error().to_string(), HasSubstr("column 'experts' is missing"));
}

TEST(KernelFit, SaysWhatItCannotUse) {
  const machine::Machine machine = machine::load_machine("dgx-h100").value();
  const auto flash2_decode = measured_on<study::AttentionQuery>(
      machine.device, {{.batch = 64,
                        .heads = 32,
                        .kv_heads = 8,
                        .head_dim = 128,
                        .queries = 1,
                        .keys = 4096,
                        .cache = false,
                        .library = graph::AttentionLibrary::flash2}});
  const auto refused = calibrate_attention(machine, flash2_decode, "rows.csv");
  ASSERT_FALSE(refused.has_value());
  EXPECT_THAT(refused.error().to_string(), HasSubstr("no row whose coefficients are fitted"));
  auto rows = measured_on(machine.device, prompts(graph::AttentionLibrary::cudnn));
  rows.resize(3);
  rows.push_back(flash2_decode.front());
  const auto warnings = calibrate_attention(machine, rows, "rows.csv").value().warnings;
  ASSERT_EQ(warnings.size(), 2U);
  EXPECT_THAT(warnings[0], HasSubstr("3 rows do not determine 6 coefficients"));
  EXPECT_THAT(warnings[1], HasSubstr("1 rows are not used"));
}

}  // namespace
}  // namespace orrery::calibrate
