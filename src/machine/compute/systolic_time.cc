// SPDX-License-Identifier: Apache-2.0
#include "machine/compute/systolic_time.h"

#include <algorithm>
#include <cmath>

#include "machine/compute/compute_model.h"

namespace orrery::compute {
namespace {

constexpr double kLeastSumBytes = 2;

/// Cycles per second of a device that computes at `flops`.
double clock_of(const SystolicArray& array, double flops) {
  return flops /
         (2 * static_cast<double>(array.rows * array.cols) * static_cast<double>(array.arrays));
}

SystolicProblem problem_of(const graph::GemmShape& shape, graph::DataType type) {
  const double bytes = static_cast<double>(graph::bits_of(type)) / 8;
  return {.shape = shape,
          .sparsity = {},
          .word_bytes = bytes,
          .output_bytes = std::max(bytes, kLeastSumBytes)};
}

/// All of it from one memory.
Feed feed_of(const SystolicArray& array, const Rates& rates, const KernelCoefficients& c) {
  return {.shared = rates.bandwidth * c.gemm_memory_share / clock_of(array, rates.flops)};
}

/// Heads with `keys` seen by every query: Q K^T and P V forward; of the backward also the gradients
/// of P, V, Q and K.
double attention_cycles(const graph::Operator& op, const SystolicArray& array) {
  const auto pairs = static_cast<double>(op.gemm.batch) * static_cast<double>(op.gemm.m);
  const double per_pair = (op.backward ? 10.0 : 4.0) * static_cast<double>(op.gemm.k);
  const auto keys =
      std::clamp(static_cast<std::int64_t>(std::ceil(op.flops.value() / (pairs * per_pair))),
                 std::int64_t{1}, std::max<std::int64_t>(1, op.gemm.n));
  const auto cycles = [&](std::int64_t m, std::int64_t n, std::int64_t k) {
    return device_cost(problem_of({op.gemm.batch, m, n, k}, op.type), array, {}).cycles;
  };
  const double scores = cycles(op.gemm.m, keys, op.gemm.k);
  const double values = cycles(op.gemm.m, op.gemm.k, keys);
  return op.backward ? 2 * scores + values + 2 * cycles(keys, op.gemm.k, op.gemm.m)
                     : scores + values;
}

}  // namespace

std::optional<double> systolic_seconds(const graph::Operator& op, const Rates& rates,
                                       const Device& device) {
  const KernelCoefficients& c = device.kernels_of(op);
  const SystolicArray& array = device.systolic;
  const graph::GemmShape& s = op.gemm;
  if (s.batch <= 0 || s.m <= 0 || s.n <= 0 || s.k <= 0) {
    return std::nullopt;
  }
  const double clock = clock_of(array, rates.flops);
  if (op.kind == graph::OperatorKind::gemm || op.kind == graph::OperatorKind::grouped_gemm) {
    const bool grouped = op.kind == graph::OperatorKind::grouped_gemm;
    const SystolicCost cost = device_cost(problem_of(s, op.type), array, feed_of(array, rates, c));
    return to_seconds(c.gemm_launch + (grouped ? c.grouped_launch : Time(0))) + cost.cycles / clock;
  }
  if (op.kind == graph::OperatorKind::attention && op.flops > Flops(0)) {
    const double memory =
        static_cast<double>(op.bytes.value()) / (rates.bandwidth * c.elementwise_share);
    return to_seconds(c.attention_launch) + std::max(attention_cycles(op, array) / clock, memory);
  }
  return std::nullopt;
}

SystolicKernel systolic_kernel(const graph::Operator& op, const Device& device,
                               const Sparsity& sparsity, bool stalls) {
  const MemoryTier& memory = device.memory.front();
  const Rates rates = rates_of(op, device, clock_of(op, device));
  SystolicKernel kernel{.problem = problem_of(op.gemm, op.type), .cost = {}};
  kernel.problem.sparsity = sparsity;
  kernel.cost =
      device_cost(kernel.problem, device.systolic,
                  stalls ? feed_of(device.systolic, rates, device.kernels_of(op)) : Feed{});
  kernel.energy =
      systolic_energy(kernel.problem, kernel.cost, device.systolic, memory.energy_per_byte);
  return kernel;
}

}  // namespace orrery::compute
