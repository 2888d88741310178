// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "base/result.h"
#include "mpi_calls/check.h"

namespace orrery::cli {

/// Kernels that `orrery measure` times: gemm, memory, attention.
inline constexpr std::array<std::string_view, 3> kMeasuredKernels{"gemm", "memory", "attention"};

/// Times kernels of one of these sorts on one core, in an emitted program (emit/runtime/work.h),
/// and returns them as `orrery calibrate` of the same name reads them, comma-separated under a
/// header. Products are fp32; attention is its two products and a pass over the scores between
/// them, unfused, not causal, one sequence. `rounds`: how often all run; the half of these in the
/// middle by their time counts. Mistakes: those of MpiProgram.
Result<std::string> measure_kernels(std::string_view what, const mpi_calls::MpiLibrary& library,
                                    std::int64_t rounds);

}  // namespace orrery::cli
