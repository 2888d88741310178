// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "calibrate/gemm.h"
#include "calibrate/kernel_fit.h"
#include "report/fields.h"

namespace orrery::report {

/// Returns, per format, the shapes, the errors before and after the fit and each coefficient beside
/// its old value.
std::string gemm_calibration_table(const calibrate::GemmCalibration& calibration);

/// Declares docs/schema/calibrate-gemm.json.
void declare(const calibrate::GemmCalibration& calibration, Fields& fields);

/// Returns the same of attention and MoE layers, by set of coefficients.
std::string kernel_calibration_table(const calibrate::KernelCalibration& calibration);
/// Declares docs/schema/calibrate-kernels.json.
void declare(const calibrate::KernelCalibration& calibration, Fields& fields);

}  // namespace orrery::report
