// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "calibrate/gemm.h"

namespace orrery::report {

/// Per format the shapes, the errors before and after the fit and each coefficient beside its old
/// value.
std::string gemm_calibration_table(const calibrate::GemmCalibration& calibration);

/// One JSON object: {machine, fits: [{format, fitted: {shapes, median_before, mean_before,
/// median_after, mean_after}, held_out: as fitted, cast_launch, cast_bytes, coefficients: [{name,
/// before, after}]}], warnings: [text]}; times are in seconds.
std::string gemm_calibration_json(const calibrate::GemmCalibration& calibration);

}  // namespace orrery::report
