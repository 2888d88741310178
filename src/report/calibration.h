// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "calibrate/gemm.h"
#include "calibrate/kernel_fit.h"

namespace orrery::report {

/// Per format the shapes, the errors before and after the fit and each coefficient beside its old
/// value.
std::string gemm_calibration_table(const calibrate::GemmCalibration& calibration);

/// One JSON object: {machine, fits: [{format, cast_launch, cast_bytes, fitted: {shapes,
/// median_before, mean_before, median_after, mean_after}, held_out: as fitted, coefficients:
/// [{name, before, after}]}], warnings: [text]}; times are in seconds.
std::string gemm_calibration_json(const calibrate::GemmCalibration& calibration);

/// The same of attention and MoE layers, by set of coefficients; JSON: {machine, fits: [{set,
/// fitted, held_out, coefficients}], warnings}, as above.
std::string kernel_calibration_table(const calibrate::KernelCalibration& calibration);
std::string kernel_calibration_json(const calibrate::KernelCalibration& calibration);

}  // namespace orrery::report
