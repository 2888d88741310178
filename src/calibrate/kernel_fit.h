// SPDX-License-Identifier: Apache-2.0
/// Measured times of fused attention, of MoE layers and of kernels that stream -> the coefficients
/// of a device that they tell (machine/compute/compute_model.h).
#pragma once

#include <string>
#include <vector>

#include "base/csv.h"
#include "base/result.h"
#include "calibrate/coefficients.h"
#include "graph/operator.h"
#include "machine/machine.h"

namespace orrery::calibrate {

/// One row: the kernels that its time covers, one after the other.
struct KernelMeasurement {
  std::vector<graph::Operator> kernels;
  Time time{0};
  Time of_step{0};  ///< what all of it take of a step, as in GemmMeasurement; 0: it is of no step
};

/// Bytes that a measurement of up to five kernels takes.
inline constexpr std::size_t kMeasurementBytes =
    sizeof(KernelMeasurement) + 5 * sizeof(graph::Operator);

struct KernelFit {
  std::string set;  ///< of Device::format_kernels; empty: the general kernels
  std::span<const Coefficient> coefficients;
  compute::KernelCoefficients before, after;
  FitError fitted_before, fitted_after;      ///< of the rows that the fit used
  FitError held_out_before, held_out_after;  ///< of the rest; no rows when there are few
};

struct KernelCalibration {
  machine::Machine machine;
  std::vector<KernelFit> fits;
  std::vector<std::string> warnings;
};

/// The coefficients with the least mean absolute log error, an error counting at most a factor of
/// e; from 40 rows on a quarter is held out by a hash of its shape. Each set of coefficients is
/// fitted to the rows that use it:
///
/// - attention: prompts of a library, forward and backward (compute::attention_set), and forward of
///   a number format where no library is named: attention_share (attention_backward_share),
///   _softmax, _key_ramp, _tail, _traffic, _launch, on tiles of attention_tile queries (128 where
///   the device states none). Fewer than 16 queries a sequence against more keys of no library or
///   cuDNN: set "decode", elementwise_share, attention_start, attention_head_share. Other decodes
///   are not used: a warning.
/// - MoE layers of a number format: grouped_k_ramp, grouped_launch, permute_share (not of grouped
///   products alone); the products' other coefficients stay (calibrate gemm).
/// - kernels that stream (elementwise): elementwise_share, stream_launch.
///
/// Origins of the fitted coefficients say "measured: `source`". A set that the machine lacks is
/// added. Mistakes: no row that a set is fitted to.
Result<KernelCalibration> calibrate_attention(machine::Machine machine,
                                              const std::vector<KernelMeasurement>& rows,
                                              const std::string& source);
Result<KernelCalibration> calibrate_moe(machine::Machine machine,
                                        const std::vector<KernelMeasurement>& rows,
                                        const std::string& source);
/// Reads rows of kernels that stream: columns bytes (read and written, above 0) and latency_us;
/// others are not read. Mistakes: at most 20, with their lines.
Result<std::vector<KernelMeasurement>> read_streams(const CsvTable& csv);
/// Reads grouped products, alone, as tools/measure_gpu.py writes them: columns experts, n, k,
/// latency_us, and m (rows of each) or loads (rows of every expert where they differ, between
/// blanks), and if you like dtype (else bf16) and device, which is not read. Mistakes likewise,
/// other columns, unknown formats, loads of another number of experts.
Result<std::vector<KernelMeasurement>> read_grouped(const CsvTable& csv);
Result<KernelCalibration> calibrate_streams(machine::Machine machine,
                                            const std::vector<KernelMeasurement>& rows,
                                            const std::string& source);

}  // namespace orrery::calibrate
