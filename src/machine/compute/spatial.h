// SPDX-License-Identifier: Apache-2.0
/// Kernels of a dataflow device that lays operators out in space (SambaNova SN40L).
///
///   lone kernel:  max(FLOPs / (peak gemm_peak_share), bytes / (bandwidth gemm_memory_share))
///                 + host_launch + launch
///   fused kernel: the same of the sums of its operators; of the bytes only those that cross the
///                 memory of the first tier: weights, a cache's keys and values, and of an
///                 operator's other operands and results (kept_bytes) what is beyond `sram`; the
///                 rest passes that, at least kept / sram_bandwidth
///
/// Fused operators run beside one another, each on units in proportion to its FLOPs, so that no
/// stage is slower than the whole. fused_launches(): what n fused kernels of a step wait for.
///
/// Ignores:  stages that are slower than their share; that operators beside one another share the
///           on-chip memory: each may fill it.
/// Source:   SN40L (MICRO'24, arXiv 2405.07518): fusion, orchestration by software and hardware.
#pragma once

#include <cstdint>
#include <span>

#include "graph/operator.h"
#include "machine/compute/device.h"
#include "machine/compute/rates.h"

namespace orrery::compute {

/// Seconds of the units and of the memories, which run beside one another.
struct FusedWork {
  double compute = 0;
  double memory = 0;
  double on_chip = 0;
};
inline bool fuses(const Device& device) {
  return device.model == ComputeModel::spatial && device.spatial.fusion != FusionMode::unfused;
}

/// Every operand and result crosses the memory.
FusedWork lone_work(const graph::Operator& op, const Rates& rates, const Device& device);
/// Operands and results that are not weights or cache.
Bytes kept_bytes(const graph::Operator& op);
/// Returns the work of the operator in a fused kernel, whose intermediate tensors stay on the chip
/// where they fit.
FusedWork fused_work(const graph::Operator& op, const Rates& rates, const Device& device);

/// Returns the time of one fused kernel, without its launch. Each may be one of its operators: then
/// its parts add up, which is more where some are bound by the units and others by the memory.
Time fused_time(std::span<const graph::Operator> operators, const Device& device);

/// Returns the time of launches; unfused, software: n (host_launch + launch); hardware: host_launch
/// + n launch.
Time launches(const SpatialDevice& device, std::int64_t kernels);

}  // namespace orrery::compute
