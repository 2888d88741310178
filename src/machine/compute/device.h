// SPDX-License-Identifier: Apache-2.0
/// What one accelerator can do, as its machine file states it.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "base/units.h"
#include "graph/operator.h"

namespace orrery {

inline constexpr int kDataTypeCount = 5;

struct MemoryTier {
  std::string name;  ///< "hbm"
  Bytes capacity{0};
  Bandwidth bandwidth{0};
  Time latency{0};
};

/// Coefficients of the kernel time model (docs/models.md); few per device type, fitted to measured
/// kernels by tools/fit_gemm.py.  FILLED IN by compute_model.h's formula.
struct KernelCoefficients {
  double gemm_peak = 0.9;            ///< share of the peak a full wave sustains
  double gemm_memory = 0.85;         ///< share of memory bandwidth a GEMM's operands stream at
  Time gemm_launch{2'000'000};       ///< start and drain of one GEMM kernel
  double k_ramp = 0;                 ///< depth at which the K loop reaches half of its rate
  double attention_peak = 0.6;       ///< share of the peak of fused attention, forward
  double attention_backward_peak = 0.5;
  double elementwise_memory = 0.88;  ///< share of memory bandwidth of streaming kernels
  double norm_memory = 0.6;
  double softmax_memory = 0.55;
  Time stream_launch{2'000'000};     ///< start and drain of one streaming kernel
};

struct Device {
  std::string name;  ///< "A100-SXM4-80GB"
  std::array<FlopRate, kDataTypeCount> peak{};  ///< dense, by DataType; 0 = not supported
  int units = 1;     ///< streaming multiprocessors, compute units
  std::vector<MemoryTier> memory;  ///< the first holds parameters and activations
  Power power{0};
  KernelCoefficients kernels;
  /// Share of compute units and of memory bandwidth that a collective running at the same time takes
  /// from compute kernels.
  double overlap_units = 0;
  double overlap_memory = 0;
};

}  // namespace orrery
