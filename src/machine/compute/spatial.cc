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

}  // namespace

FusedWork lone_work(const graph::Operator& op, const Rates& rates, const Device& device) {
  const double bytes =
      is_product(op) ? weight_bytes(op) + row_bytes(op) : static_cast<double>(op.bytes.value());
  return work(op, bytes, rates, device);
}

FusedWork fused_work(const graph::Operator& op, const Rates& rates, const Device& device) {
  double bytes = 0;
  if (is_product(op)) {
    bytes = weight_bytes(op);
  } else if (op.kind == graph::OperatorKind::attention) {
    bytes = static_cast<double>(op.bytes.value());
  } else if (op.kind == graph::OperatorKind::embedding ||
             op.kind == graph::OperatorKind::cache_write) {
    bytes = static_cast<double>(op.bytes.value()) / 2;  // gathered, or written
  }
  return work(op, bytes, rates, device);
}

Time fused_time(std::span<const graph::Operator> operators, const Device& device) {
  FusedWork sum;
  for (const graph::Operator& op : operators) {
    const FusedWork part = fused_work(op, rates_of(op, device), device);
    sum.compute += part.compute;
    sum.memory += part.memory;
  }
  return from_seconds(std::max(sum.compute, sum.memory));
}

Time launches(const SpatialDevice& device, std::int64_t kernels) {
  const std::int64_t by_host =
      device.fusion == FusionMode::hardware ? std::min<std::int64_t>(1, kernels) : kernels;
  return device.host_launch * by_host + device.launch * kernels;
}

}  // namespace orrery::compute
