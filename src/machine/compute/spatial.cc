// SPDX-License-Identifier: Apache-2.0
#include "machine/compute/spatial.h"

#include <algorithm>

namespace orrery::compute {
namespace {

constexpr double kResultBytes = 2;

bool is_product(const graph::Operator& op) {
  return op.kind == graph::OperatorKind::gemm || op.kind == graph::OperatorKind::grouped_gemm;
}

double weight_bytes(const graph::Operator& op) {
  const auto bits =
      static_cast<double>(op.stored_bits > 0 ? op.stored_bits : graph::bits_of(op.type));
  return static_cast<double>(op.gemm.batch) * static_cast<double>(op.gemm.k) *
         static_cast<double>(op.gemm.n) * bits / 8;
}

double row_bytes(const graph::Operator& op) {
  const double bytes = static_cast<double>(graph::bits_of(op.type)) / 8;
  return static_cast<double>(op.gemm.batch) * static_cast<double>(op.gemm.m) *
         (bytes * static_cast<double>(op.gemm.k) +
          std::max(bytes, kResultBytes) * static_cast<double>(op.gemm.n));
}

FusedWork work(const graph::Operator& op, double bytes, const Rates& rates, const Device& device) {
  const KernelCoefficients& c = device.kernels_of(op);
  const Flops flops = is_product(op) ? flops_of(op.gemm) : op.flops;
  return {.compute = flops > Flops(0) ? flops.value() / (rates.flops * c.gemm_peak_share) : 0,
          .memory = bytes / (rates.bandwidth * c.gemm_memory_share)};
}

double all_bytes(const graph::Operator& op) {
  return is_product(op) ? weight_bytes(op) + row_bytes(op) : static_cast<double>(op.bytes.value());
}

/// Weights and cache, which cross the memory in any case.
double crossing_bytes(const graph::Operator& op) {
  if (is_product(op)) {
    return weight_bytes(op);
  }
  switch (op.kind) {
    case graph::OperatorKind::attention:
      return static_cast<double>(op.bytes.value());
    case graph::OperatorKind::embedding:
    case graph::OperatorKind::cache_write:
      return static_cast<double>(op.bytes.value()) / 2;  // gathered, or written
    default:
      return 0;
  }
}

}  // namespace

FusedWork lone_work(const graph::Operator& op, const Rates& rates, const Device& device) {
  return work(op, all_bytes(op), rates, device);
}

Bytes kept_bytes(const graph::Operator& op) {
  return Bytes(static_cast<std::int64_t>(all_bytes(op) - crossing_bytes(op)));
}

FusedWork fused_work(const graph::Operator& op, const Rates& rates, const Device& device) {
  const SpatialDevice& chip = device.spatial;
  const double kept = all_bytes(op) - crossing_bytes(op);
  const double fits =
      chip.sram > Bytes(0) ? std::min(kept, static_cast<double>(chip.sram.value())) : kept;
  FusedWork fused = work(op, crossing_bytes(op) + kept - fits, rates, device);
  if (chip.sram_bandwidth > Bandwidth(0)) {
    fused.on_chip = fits / chip.sram_bandwidth.value();
  }
  return fused;
}

Time fused_time(std::span<const graph::Operator> operators, const Device& device) {
  FusedWork sum;
  for (const graph::Operator& op : operators) {
    const FusedWork part = fused_work(op, rates_of(op, device, clock_of(op, device)), device);
    sum.compute += part.compute;
    sum.memory += part.memory;
    sum.on_chip += part.on_chip;
  }
  return from_seconds(std::max({sum.compute, sum.memory, sum.on_chip}));
}

Time launches(const SpatialDevice& device, std::int64_t kernels) {
  const std::int64_t by_host =
      device.fusion == FusionMode::hardware ? std::min<std::int64_t>(1, kernels) : kernels;
  return device.host_launch * by_host + device.launch * kernels;
}

}  // namespace orrery::compute
