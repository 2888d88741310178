// SPDX-License-Identifier: Apache-2.0
/// `orrery astra --native`: the same traces with ASTRA-sim's semantics and with link occupancy in
/// all dimensions, side by side.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compat/astra/run.h"

namespace orrery {

struct NativeReport {
  /// ASTRA-sim's, unless it cannot run the traces: then why not.
  std::optional<astra::RunResult> compat;
  std::string compat_failure;
  std::string backend;  ///< of compat
  astra::RunResult native;
  astra::NativeNetworkOptions network;
  std::string machine;  ///< a name, or the network file
  std::vector<std::string> warnings;
};

/// What kept the native run busy for the greatest share of its cycles: the busiest link of a
/// dimension, or compute. Where no share is near 1, latencies and waiting for each other are the
/// rest.
struct NativeLimit {
  int dimension = -1;  ///< -1: compute
  double share = 0;    ///< of the cycles
};
NativeLimit limit_of(const NativeReport& report);

/// Cycles, exposed communication and messages with their ratios; then the dimensions.
std::string native_table(const NativeReport& report);

/// {"compat": {"cycles", "cycles_min", "exposed_cycles", "messages", "classes"} or {"error"},
/// "native": the same and "unfolded", "ratio" (native over compat cycles, null without compat),
/// "dimensions": [{"name", "kind", "size", "bandwidth" (B/s of a device), "latency_ns",
/// "busiest_link_share", "mean_link_share"}], "limited_by": {"dimension" (null: compute),
/// "share"}, "ranks": [{"rank", "compat_cycles" (null), "native_cycles"}], "warnings"}.
std::string native_json(const NativeReport& report);

}  // namespace orrery
