// SPDX-License-Identifier: Apache-2.0
/// The shipped attention coefficients against measured context attention of
/// ai-dynamo/aiconfigurator@095f58a51c4c (Apache-2.0), vLLM 0.14 (A100), 0.19 (RTX PRO 6000) and
/// 0.24. attention_measured.csv: of each device the 40 shapes of the public table, heads up to 256
/// wide, whose SHA-256 of "sample,batch,queries,heads,kv_heads,head_dim,window" comes first.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "../machine/compute/causal_attention.h"
#include "base/csv.h"
#include "base/reader.h"
#include "machine/compute/compute_model.h"
#include "machine/machine.h"
#include "study/kernels.h"

namespace orrery::study {
namespace {

struct Measured {
  std::string device, machine;
  double median;  ///< bound of the absolute relative error
};

using Change = void (*)(compute::Device&, const AttentionQuery&);
void none(compute::Device& /*device*/, const AttentionQuery& /*query*/) {}

double median_error(const Measured& measured, const CsvTable& table, Change change = none) {
  CsvTable rows = table;
  std::erase_if(rows.rows, [&](const CsvRow& row) { return row.cells[0] != measured.device; });
  const auto queries = read_queries<AttentionQuery>(rows).value();
  const std::size_t latency = *rows.column("latency_us");
  compute::Device device =
      compute::at_boost(machine::load_machine(measured.machine).value().device);
  std::vector<double> errors;
  for (std::size_t i = 0; i < queries.size(); ++i) {
    change(device, queries[i]);
    const KernelRow row = time_kernels(kernels_of(queries[i], device, "").value(), device);
    const double seconds = 1e-6 * parse_number(rows.rows[i].cells[latency]).value();
    errors.push_back(std::abs(to_seconds(row.time) / seconds - 1));
  }
  const auto middle = errors.begin() + static_cast<std::ptrdiff_t>(errors.size() / 2);
  std::nth_element(errors.begin(), middle, errors.end());
  return *middle;
}

TEST(AttentionMeasured, ShippedCoefficientsPredictKernelsOfEachDevice) {
  const auto table =
      load_csv(std::string(ORRERY_SOURCE_DIR) + "/tests/calibrate/attention_measured.csv").value();
  for (const Measured& measured : std::vector<Measured>{{"a100", "dgx-a100-80g", 0.09},
                                                        {"h100", "dgx-h100", 0.11},
                                                        {"h200", "dgx-h200", 0.09},
                                                        {"b200", "dgx-b200", 0.09},
                                                        {"b300", "dgx-b300", 0.09},
                                                        {"gb200", "gb200-nvl72", 0.09},
                                                        {"gb300", "gb300-nvl72", 0.09},
                                                        {"rtx_pro_6000", "rtx-pro-6000", 0.09},
                                                        {"l40s", "l40s", 0.09}}) {
    const double error = median_error(measured, table);
    EXPECT_LE(error, measured.median) << measured.device;
    fmt::print("{:12} attention median {:.1f} %\n", measured.device, 100 * error);
  }
}

/// attention_trtllm_measured.csv: the same of TensorRT-LLM 1.3, more than one query.
TEST(AttentionMeasured, TensorRtLlmsCoefficientsPredictItsKernelsAndItsCacheWrites) {
  const auto table =
      load_csv(std::string(ORRERY_SOURCE_DIR) + "/tests/calibrate/attention_trtllm_measured.csv")
          .value();
  for (const Measured& measured : std::vector<Measured>{{"h100", "dgx-h100", 0.09},
                                                        {"h200", "dgx-h200", 0.09},
                                                        {"b200", "dgx-b200", 0.09},
                                                        {"b300", "dgx-b300", 0.09},
                                                        {"gb200", "gb200-nvl72", 0.09},
                                                        {"gb300", "gb300-nvl72", 0.09}}) {
    const double error = median_error(measured, table);
    EXPECT_LE(error, measured.median) << measured.device;
    fmt::print("{:12} TensorRT-LLM attention median {:.1f} %\n", measured.device, 100 * error);
  }
}

/// cudnn_attention.csv: cuDNN in bf16 and fp8, forward and backward, as NVIDIA/cudnn-frontend
/// publishes it (benchmark/sdpa_benchmark_training: results of 9.18 on GB200 and GB300 and of 9.19
/// on H200, artifacts of B200). The rows *_later are runs of 9.19 on GB200 and GB300, which no
/// coefficient is from.
TEST(AttentionMeasured, CudnnsCoefficientsPredictItsKernelsOf16And8Bits) {
  const auto table =
      load_csv(std::string(ORRERY_SOURCE_DIR) + "/tests/calibrate/cudnn_attention.csv").value();
  for (const Measured& measured : std::vector<Measured>{{"h200", "dgx-h200", 0.05},
                                                        {"b200", "dgx-b200", 0.05},
                                                        {"gb200", "gb200-nvl72", 0.02},
                                                        {"gb300", "gb300-nvl72", 0.02},
                                                        {"gb200_later", "gb200-nvl72", 0.05},
                                                        {"gb300_later", "gb300-nvl72", 0.05}}) {
    const double error = median_error(measured, table);
    EXPECT_LE(error, measured.median) << measured.device;
    fmt::print("{:12} cuDNN attention median {:.1f} %\n", measured.device, 100 * error);
  }
}

/// decode_measured.csv: one query of each sequence (vLLM 0.14 on A100, 0.24 on L40S, else 0.19),
/// keys and values above twice the last cache; the 40 shapes whose SHA-256 comes first. On H200 as
/// if keys were cut for their own number of heads, which they are not: see the next test.
TEST(AttentionMeasured, ShippedCoefficientsPredictDecodingFromMemory) {
  const auto table =
      load_csv(std::string(ORRERY_SOURCE_DIR) + "/tests/calibrate/decode_measured.csv").value();
  for (const Measured& measured : std::vector<Measured>{{"a100", "dgx-a100-80g", 0.09},
                                                        {"h100", "dgx-h100", 0.08},
                                                        {"b200", "dgx-b200", 0.08},
                                                        {"l40s", "l40s", 0.08},
                                                        {"rtx_pro_6000", "rtx-pro-6000", 0.08},
                                                        {"h200", "dgx-h200", 0.09}}) {
    const double error = median_error(measured, table);
    EXPECT_LE(error, measured.median) << measured.device;
    fmt::print("{:12} decode attention median {:.1f} %\n", measured.device, 100 * error);
  }
}

/// Keys of one head cut by FlashAttention-3 (prepare_varlen_num_blocks in
/// flash_prepare_scheduler.cu of vllm-project/flash-attention) for `heads` of them: each sequence's
/// blocks of 128 keys (80 of wide heads) over those that a unit is to have, 1.1 times its share of
/// all; at most 32 parts.
double parts_of_flash_attention_3(const AttentionQuery& query, std::int64_t heads, int units) {
  const std::int64_t keys = query.window > 0 ? std::min(query.keys, query.window) : query.keys;
  const auto block = query.head_dim > 128 ? 80.0 : 128.0;
  const double blocks = std::ceil(static_cast<double>(keys) / block);
  const double of_unit = std::ceil(1.1 * static_cast<double>(query.batch * heads) * blocks / units);
  return std::clamp(std::ceil(blocks / of_unit), 1.0, 32.0);
}

/// H200's table was measured with keys that were cut for the 8 key heads of the collector's model,
/// whatever heads the kernel had (ai-dynamo/aiconfigurator pull request 1004 mends it for H100's),
/// so that few units worked where there were fewer; a unit alone reads 59 GB/s.
TEST(AttentionMeasured, KeysCutForEightHeadsExplainTheTableOfH200) {
  const auto table =
      load_csv(std::string(ORRERY_SOURCE_DIR) + "/tests/calibrate/decode_measured.csv").value();
  const Change cut = [](compute::Device& device, const AttentionQuery& query) {
    const double parts = parts_of_flash_attention_3(query, 8, device.units);
    device.format_kernels.at("decode").attention_head_share =
        parts * 59e9 / device.memory.front().bandwidth.value();
  };
  EXPECT_LE(median_error({"h200", "dgx-h200", 0}, table, cut), 0.05);
}

/// A head of one sequence in 32 parts (vLLM's flash_attn_max_num_splits_for_cuda_graph), on a unit
/// each, where all units would take 34 us (H100, vLLM 0.19; the same table).
TEST(AttentionMeasured, OneHeadOfOneSequenceLeavesUnitsOfH100Idle) {
  const compute::Device device =
      compute::at_boost(machine::load_machine("dgx-h100").value().device);
  const AttentionQuery query{
      .heads = 8, .kv_heads = 1, .head_dim = 128, .queries = 1, .keys = 131072};
  const KernelRow row = time_kernels(kernels_of(query, device, "").value(), device);
  EXPECT_NEAR(to_seconds(row.time), 47.71e-6, 0.05 * 47.71e-6);
}

/// convolution_measured.csv: causal convolutions of TensorRT-LLM 1.3 (causal_conv1d_fn, the
/// mamba2 tables) over 512 tokens and more; the 40 shapes whose SHA-256 comes first.
TEST(ConvolutionMeasured, ShippedSharesPredictKernelsOfEachDevice) {
  const auto table =
      load_csv(std::string(ORRERY_SOURCE_DIR) + "/tests/calibrate/convolution_measured.csv")
          .value();
  for (const Measured& measured : std::vector<Measured>{{"h100", "dgx-h100", 0.2},
                                                        {"h200", "dgx-h200", 0.2},
                                                        {"b200", "dgx-b200", 0.2},
                                                        {"b300", "dgx-b300", 0.2},
                                                        {"gb200", "gb200-nvl72", 0.2},
                                                        {"gb300", "gb300-nvl72", 0.2}}) {
    const compute::Device device =
        compute::at_boost(machine::load_machine(measured.machine).value().device);
    std::vector<double> errors;
    for (const CsvRow& row : table.rows) {
      if (row.cells[0] != measured.device) {
        continue;
      }
      const auto number = [&](const char* column) {
        return parse_number(row.cells[*table.column(column)]).value();
      };
      // Reads and writes every element once, in bf16.
      const double bytes = 2 * 2 * number("batch") * number("tokens") * number("channels");
      const graph::Operator op{.name = "convolution",
                               .kind = graph::OperatorKind::convolution,
                               .type = graph::DataType::bf16,
                               .bytes = Bytes(static_cast<std::int64_t>(bytes))};
      errors.push_back(std::abs(
          1e6 * to_seconds(compute::kernel_time(op, device).alone) / number("latency_us") - 1));
    }
    ASSERT_EQ(errors.size(), 40U);
    std::nth_element(errors.begin(), errors.begin() + 20, errors.end());
    EXPECT_LE(errors[20], measured.median) << measured.device;
    fmt::print("{:12} convolution median {:.1f} %\n", measured.device, 100 * errors[20]);
  }
}

TEST(AttentionMeasured, NoDeviceBeatsItsPeakOrBandwidthAndBetterOnesAreNeverSlower) {
  constexpr auto kType = static_cast<std::size_t>(graph::DataType::bf16);
  for (const char* name : {"dgx-a100-80g", "dgx-h100", "dgx-h200", "dgx-b200", "gb300-nvl72",
                           "rtx-pro-6000", "l40s", "mi300x", "tpu-v5p"}) {
    const compute::Device device = compute::at_boost(machine::load_machine(name).value().device);
    compute::Device faster = device;
    faster.peak[kType] = device.peak[kType] * 1.5;
    compute::Device wider = device;
    wider.memory.front().bandwidth = device.memory.front().bandwidth * 1.5;
    for (const std::int64_t heads : {1, 7, 64, 4096}) {
      Time shorter{0};
      for (const std::int64_t length : {1, 16, 100, 1024, 5000, 65536}) {
        graph::Operator op = compute::causal_attention(heads, length, 128);
        const Time time = compute::kernel_time(op, device).alone;
        EXPECT_GE(time, shorter) << name << " " << length;
        shorter = time;
        for (const bool backward : {false, true}) {
          op.backward = backward;
          const Time alone = compute::kernel_time(op, device).alone;
          EXPECT_GE(alone, op.flops / device.peak[kType]) << name;
          const bool near = !backward && op.bytes <= device.last_level_cache;
          const Bandwidth most =
              device.memory.front().bandwidth * (near ? device.kernels.last_level_speedup : 1);
          EXPECT_GE(alone, op.bytes / most) << name;
          EXPECT_LE(compute::kernel_time(op, faster).alone, alone) << name;
          EXPECT_LE(compute::kernel_time(op, wider).alone, alone) << name;
        }
      }
    }
  }
}

}  // namespace
}  // namespace orrery::study
