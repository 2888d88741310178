// SPDX-License-Identifier: Apache-2.0
/// The shipped coefficients of Hopper against kernels of PyTorch 2.11 that were measured for this
/// test (tests/calibrate/pytorch/README.md). Nothing was fitted to the GEMMs, grouped GEMMs and
/// decodes with split keys, nor to any row of the H200 or of attention_later.csv; attention of
/// libraries was to half of the H100's prompts and whole decodes in attention.csv.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "base/reader.h"
#include "calibrate/gemm.h"
#include "machine/compute/compute_model.h"
#include "study/kernels.h"

namespace orrery::study {
namespace {

using RowFilter = std::function<bool(const CsvRow&)>;

CsvTable rows_of(const std::string& file, const RowFilter& keep) {
  CsvTable table =
      load_csv(std::string(ORRERY_SOURCE_DIR) + "/tests/calibrate/pytorch/" + file).value();
  std::erase_if(table.rows, [&](const CsvRow& row) { return !keep(row); });
  return table;
}

RowFilter of_device(const std::string& device) {
  return [device](const CsvRow& row) { return row.cells[0] == device; };
}

compute::Device shipped(const std::string& device) {
  return compute::at_boost(machine::load_machine("dgx-" + device).value().device);
}

double number(const CsvTable& table, const CsvRow& row, std::string_view column) {
  return parse_number(row.cells[*table.column(column)]).value();
}

struct Bounds {
  double median, mean;
};

/// Prints and bounds absolute relative errors.
void expect_within(const std::string& what, std::vector<double> errors, const Bounds& bounds) {
  ASSERT_FALSE(errors.empty()) << what;
  const double mean =
      std::accumulate(errors.begin(), errors.end(), 0.0) / static_cast<double>(errors.size());
  std::sort(errors.begin(), errors.end());
  const double median = errors[errors.size() / 2];
  fmt::print("{:44} {:4} kernels: median {:4.1f} %  mean {:4.1f} %  p90 {:4.1f} %\n", what,
             errors.size(), 100 * median, 100 * mean, 100 * errors[errors.size() * 9 / 10]);
  EXPECT_LE(median, bounds.median) << what;
  EXPECT_LE(mean, bounds.mean) << what;
}

double error_of(Time predicted, double measured_us) {
  return std::abs(1e6 * to_seconds(predicted) / measured_us - 1);
}

std::vector<double> gemm_errors(const CsvTable& table, const compute::Device& device) {
  std::vector<double> errors;
  for (const CsvRow& row : table.rows) {
    const auto extent = [&](std::string_view name) {
      return static_cast<std::int64_t>(number(table, row, name));
    };
    const graph::Operator op = calibrate::gemm_operator(
        std::string(row.cells[*table.column("dtype")]),
        {.batch = 1, .m = extent("m"), .n = extent("n"), .k = extent("k")});
    errors.push_back(
        error_of(compute::kernel_time(op, device).alone, number(table, row, "latency_us")));
  }
  return errors;
}

TEST(PytorchMeasured, GemmsOfLanguageModels) {
  for (const auto& [device, type, bounds] :
       std::vector<std::tuple<std::string, std::string, Bounds>>{{"h100", "bf16", {0.04, 0.05}},
                                                                 {"h100", "fp8", {0.05, 0.12}},
                                                                 {"h200", "bf16", {0.05, 0.07}},
                                                                 {"h200", "fp8", {0.06, 0.08}}}) {
    const CsvTable table = rows_of("gemm.csv", [&](const CsvRow& row) {
      return row.cells[0] == device && row.cells[1] == type;
    });
    expect_within(fmt::format("{} GEMM {}", device, type), gemm_errors(table, shipped(device)),
                  bounds);
  }
}

TEST(PytorchMeasured, GemmsOfBackwardReadTheirOperandsInAnyLayout) {
  for (const char* layout : {"nn", "tn", "nt"}) {
    const CsvTable table =
        rows_of("gemm_layouts.csv", [&](const CsvRow& row) { return row.cells[2] == layout; });
    expect_within(fmt::format("h100 GEMM bf16 {}", layout), gemm_errors(table, shipped("h100")),
                  {0.03, 0.04});
  }
}

/// A scale for each row takes other kernels, none of them for few rows: not modelled. The bound
/// says how far off fp8's coefficients, of one scale a tensor, are.
TEST(PytorchMeasured, GemmsWithAScaleForEachRowAreSlower) {
  const CsvTable table = rows_of("gemm_rowwise.csv", of_device("h100"));
  expect_within("h100 GEMM fp8, a scale for each row", gemm_errors(table, shipped("h100")),
                {0.12, 0.2});
}

std::vector<double> attention_errors(const CsvTable& table, const compute::Device& device) {
  const auto queries = read_queries<AttentionQuery>(table).value();
  std::vector<double> errors;
  for (std::size_t i = 0; i < queries.size(); ++i) {
    const KernelRow row = time_kernels(kernels_of(queries[i], device, "").value(), device);
    errors.push_back(error_of(row.time, number(table, table.rows[i], "latency_us")));
  }
  return errors;
}

TEST(PytorchMeasured, AttentionOfPromptsForwardAndBackwardByLibrary) {
  for (const auto& [device, file] : std::vector<std::pair<std::string, std::string>>{
           {"h100", "attention_later.csv"}, {"h200", "attention.csv"}}) {
    for (const auto& [library, backward, bounds] :
         std::vector<std::tuple<std::string, std::string, Bounds>>{
             {"cudnn", "false", {0.08, 0.09}},
             {"cudnn", "true", {0.06, 0.08}},
             {"flash2", "false", {0.08, 0.13}},
             {"flash2", "true", {0.06, 0.08}}}) {
      const CsvTable table = rows_of(file, [&](const CsvRow& row) {
        return row.cells[0] == device && row.cells[2] == library && row.cells[10] == backward &&
               row.cells[7] != "1";
      });
      expect_within(
          fmt::format("{} {} {}", device, library, backward == "true" ? "backward" : "forward"),
          attention_errors(table, shipped(device)), bounds);
    }
  }
}

/// Where FlashAttention-2 splits keys over idle units and where it does not
/// (kMostSplitTiles), keys and values above twice the L2.
TEST(PytorchMeasured, DecodingWithKeysSplitAndWhole) {
  for (const std::string device : {"h100", "h200"}) {
    for (const bool split : {true, false}) {
      CsvTable table = rows_of("attention.csv", of_device(device));
      std::erase_if(table.rows, [&](const CsvRow& row) {
        const double tiles = number(table, row, "batch") * number(table, row, "kv_heads");
        const double bytes =
            4 * tiles * number(table, row, "head_dim") * number(table, row, "keys");
        return number(table, row, "queries") > 1 || bytes < 1e8 || (tiles < 1.6 * 132) != split;
      });
      expect_within(fmt::format("{} decode, keys {}", device, split ? "split" : "whole"),
                    attention_errors(table, shipped(device)), {0.08, 0.1});
    }
  }
}

/// Mean rows and busy experts, as MoE layers are predicted. Unequal loads are of at most the
/// inverse 0.6th power of a uniform number.
TEST(PytorchMeasured, GroupedGemmsOfExperts) {
  const compute::Device device = shipped("h100");
  for (const bool equal : {true, false}) {
    const CsvTable table = rows_of("grouped.csv", [&](const CsvRow& row) {
      return row.cells[0] == "h100" && row.cells[6].empty() == equal;
    });
    std::vector<double> errors;
    for (const CsvRow& row : table.rows) {
      const auto experts = static_cast<std::int64_t>(number(table, row, "experts"));
      std::int64_t rows = 0;
      std::int64_t busy = experts;
      if (equal) {
        rows = experts * static_cast<std::int64_t>(number(table, row, "m"));
      } else {
        std::istringstream loads{std::string(row.cells[6])};
        busy = 0;
        for (std::int64_t load = 0; loads >> load;) {
          rows += load;
          busy += load > 0 ? 1 : 0;
        }
      }
      graph::Operator op;
      op.kind = graph::OperatorKind::grouped_gemm;
      op.gemm = {.batch = busy,
                 .m = (rows + busy - 1) / busy,
                 .n = static_cast<std::int64_t>(number(table, row, "n")),
                 .k = static_cast<std::int64_t>(number(table, row, "k"))};
      op.flops = flops_of(op.gemm);
      errors.push_back(
          error_of(compute::kernel_time(op, device).alone, number(table, row, "latency_us")));
    }
    expect_within(fmt::format("h100 grouped GEMM bf16, {} loads", equal ? "equal" : "unequal"),
                  errors, equal ? Bounds{0.04, 0.05} : Bounds{0.13, 0.15});
  }
}

/// Kernels that stream more than 30 MB; fused ones are Triton's.
TEST(PytorchMeasured, FusedElementwiseKernels) {
  for (const std::string device : {"h100", "h200"}) {
    const CsvTable table = rows_of("stream.csv", of_device(device));
    std::vector<double> errors;
    for (const CsvRow& row : table.rows) {
      const std::string_view kernel = row.cells[1];
      const double bytes = number(table, row, "bytes");
      if (bytes < 3e7 || (kernel != "add" && kernel != "copy" && kernel != "triton_swiglu")) {
        continue;
      }
      graph::Operator op;
      op.bytes = Bytes(static_cast<std::int64_t>(bytes));
      errors.push_back(error_of(compute::kernel_time(op, shipped(device)).alone,
                                number(table, row, "latency_us")));
    }
    expect_within(fmt::format("{} elementwise", device), errors, {0.05, 0.06});
  }
}

}  // namespace
}  // namespace orrery::study
