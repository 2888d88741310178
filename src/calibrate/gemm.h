// SPDX-License-Identifier: Apache-2.0
/// Measured GEMM times -> the `gemm_` coefficients of a device (machine/compute/compute_model.h).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/csv.h"
#include "base/result.h"
#include "calibrate/coefficients.h"
#include "machine/machine.h"

namespace orrery::calibrate {

/// Median time of one shape over the rows that measured it.
struct GemmMeasurement {
  graph::GemmShape shape;
  Time time{0};
  Time of_step{0};  ///< what all of it take of a step; 0: it is of no step
};

/// Holds the measurements by number format ("bf16", "fp8", "fp8_block"), with shapes in ascending
/// order.
using GemmTable = std::map<std::string, std::vector<GemmMeasurement>>;

/// Reads rows of C[m,n] = A[m,k] B[k,n]. Columns: m, n, k, latency_us; dtype (a name of a data
/// type, bfloat16, float16, float32 or fp8_block; without the column every row is
/// `default_format`); batch (1); device, framework, version, source, origin are allowed and not
/// used. Rows of a format other than `only` are left out when that is not empty. Mistakes: missing
/// and unknown columns ("did you mean"), numbers that are not whole or not above 0, unknown
/// formats, no row left; at most 20 of the rows are listed.
Result<GemmTable> read_gemm_table(const CsvTable& csv, const std::string& default_format,
                                  const std::string& only);

/// A conversion of A that the measured times contain: launch + row * k + bytes * m * k / memory
/// bandwidth. It belongs to the measurement, not to the machine: workloads have kernels of their
/// own for it.
struct GemmCast {
  Time launch{0};
  double bytes = 0;  ///< read and written per element of A; 3 for 16 to 8 bits
  Time row{0};       ///< per element of one row: a block of threads walks it; not fitted here
};

struct GemmFit {
  std::string format;
  std::span<const Coefficient> coefficients;
  GemmCast cast;  ///< zero unless asked for
  compute::KernelCoefficients before;
  compute::KernelCoefficients after;
  FitError fitted_before, fitted_after;      ///< of the shapes that the fit used
  FitError held_out_before, held_out_after;  ///< of the rest; no shapes when there are few
};

/// The coefficients with the least mean absolute log error, where each of four regions of shapes
/// (large; tall and thin; 128 <= m < 1024; m < 128) counts by a fixed weight, so that the many
/// small GEMMs do not outvote the large ones; an error counts at most a factor of e. From 40 shapes
/// on a quarter, chosen by a hash of the shape, is held out. At most 150 shapes per region are
/// used, chosen by the same hash. Of the products of a step none is held out; each counts by the
/// time that it takes there, and the log error of their sum counts, too.
/// With `cast` the measured times of formats of 8 bits and less are taken to contain a GemmCast,
/// which is fitted too; gemm_launch, which it cannot be told from, then stays as it is.
///
/// Ignores:  which software a row comes from: several versions of a shape are one, their median.
/// Requires: measurements, not empty; a device with a peak of the format.
GemmFit fit_gemm(const std::string& format, const std::vector<GemmMeasurement>& measurements,
                 const compute::Device& device, bool cast = false);

/// Returns the predicted times against measured ones, with the device as it is.
FitError gemm_error(const std::string& format, const std::vector<GemmMeasurement>& measurements,
                    const compute::Device& device, const GemmCast& cast = {});

/// Returns a GEMM of a format, for kernel_time.
graph::Operator gemm_operator(const std::string& format, const graph::GemmShape& shape);

/// Fits every format of the table to the machine's device. The fit of bf16 (else fp16, else fp32)
/// becomes the device's general `kernels`; other formats become entries of format_kernels. Origins
/// of the fitted coefficients say "measured: `source`". Mistakes: formats without a peak in the
/// machine, times below 80 % of what the peak rate allows (a device may clock a little above its
/// data sheet). A peak of which no product of its format reaches 0.3 becomes the fastest product's
/// rate over 0.9, which a warning says.
struct GemmCalibration {
  machine::Machine machine;
  std::vector<GemmFit> fits;
  std::vector<std::string> warnings;  ///< formats with fewer shapes than coefficients; peaks
};
Result<GemmCalibration> calibrate_gemm(machine::Machine machine, const GemmTable& table,
                                       const std::string& source, bool cast = false);

}  // namespace orrery::calibrate
