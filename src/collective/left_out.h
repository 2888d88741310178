// SPDX-License-Identifier: Apache-2.0
/// `auto` leaves out algorithms that may be faster; this says which, and why.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "collective/cost.h"
#include "collective/sweep.h"

namespace orrery::collective {

/// Returns why `auto` does not take `algorithm`, in a few words; empty where it prices it as it is
/// priced when asked for, so that auto is as fast.
std::string_view left_out_because(graph::CollectiveKind kind, CollectiveAlgorithm algorithm,
                                  const std::vector<Extent>& extents);

/// Returns a line for every algorithm that auto leaves out and that would be faster by its closed
/// form at some size of the sweep (of many sizes 64 are looked at): "direct would be faster from 8
/// B to 512 KiB, up to 3.1 times: NCCL has ...". custom stands for its kernels. None unless the
/// sweep's algorithm is auto.
std::vector<std::string> left_out(const SweepCase& on, const SweepOptions& options);

}  // namespace orrery::collective
