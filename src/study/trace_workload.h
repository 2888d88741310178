// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"
#include "graph/workload.h"
#include "machine/machine.h"
#include "workload/chakra/to_workload.h"
#include "workload/chakra/trace.h"

namespace orrery::study {

/// Traces as a workload for one machine (workload/chakra/to_workload.h).
///
///   involved_dim  counts the machine's dimensions
///   MEM nodes     copy to and from the device's second memory tier, or remote memory where there
///                 is none; without either they are kernels
///   computing     takes the traces' durations if `durations` and any of its nodes has one; else
///                 what the device takes in the first of bf16, fp16, tf32 and fp32 that it has
///   tensors       ToWorkloadOptions::tensors
///
/// Requires: a machine of exactly traces.ranks() devices (with_devices).
Result<graph::Workload> workload_of(const chakra::TraceSet& traces, const machine::Machine& machine,
                                    bool durations, chakra::TensorsOfRank tensors = {});

/// Returns what the nodes of the `.et` files of `prefix` read and write, by rank; empty of JSON, of
/// which nobody has defined it. Mistakes: those of find_trace_files.
Result<chakra::TensorsOfRank> tensors_of(const std::string& prefix);

}  // namespace orrery::study
