// SPDX-License-Identifier: Apache-2.0
/// Kineto traces (torch.profiler's export_chrome_trace) of one rank -> records.
#pragma once

#include <functional>

#include "base/config_node.h"
#include "workload/chakra/mistakes.h"
#include "workload/chakra/program_builder.h"

namespace orrery::chakra {

/// Reads the device's activities (categories kernel, gpu_memcpy, gpu_memset) in order of their
/// start, each as one node:
///
///   kernel with "Collective name"  COMM_COLL, or of send and recv COMM_SEND, COMM_RECV
///   any other                      COMP of the measured duration, without operations and bytes
///
/// Sizes are "In msg nelems" elements of "dtype", groups "Process Group Name" and "Process Group
/// Ranks" (or "Global rank start" and "Global rank stride", where the list is cut).
///
/// A node depends on the one before it in its stream and, in every other stream, on the last that
/// had ended when it began. So what was measured one after the other stays so, also where the
/// program did not ask for it, and what ran at once may.
/// Durations are whole microseconds, the remainder is carried to the next.
/// Ignores: the host, so idle time between kernels; how long communication took.
/// Mistakes: no device activities; an NCCL kernel without what it transfers, between which ranks
/// (PyTorch writes them from 2.4 on); collectives and types that are not known.
/// Source: field names as in PyTorch's profiler (torch/csrc/profiler/util.h).
///
/// `line_of` says in which line of the file a node is. False after a mistake.
bool read_kineto(const ConfigNode& trace, ProgramBuilder& builder, Mistakes& mistakes,
                 const std::function<std::int64_t(const ConfigNode&)>& line_of);

}  // namespace orrery::chakra
