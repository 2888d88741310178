// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "base/result.h"
#include "graph/workload.h"
#include "workload/chakra/tensors.h"
#include "workload/chakra/trace.h"

namespace orrery::chakra {

/// A TensorsOfRank returns what the nodes of a rank's file read and write.
using TensorsOfRank = std::function<Result<TensorUses>(std::int64_t rank)>;

struct ToWorkloadOptions {
  /// Sizes of the network's dimensions, innermost first; their product is the number of ranks. Only
  /// collectives of the world with an involved_dim that leaves some out ask for them.
  std::vector<std::int64_t> dimensions;
  /// MEM_LOAD reads from and MEM_STORE writes to this tier of the device's memory (or kRemoteTier).
  /// None: in the device's own memory, so that they are kernels.
  std::optional<int> memory_tier;
  /// False: the machine times compute nodes also where the trace has their durations.
  bool durations = true;
  graph::DataType type = graph::DataType::bf16;  ///< whose rate num_ops run at
  /// Asked of the lowest rank of every role's program. Absent: the workload allocates nothing.
  TensorsOfRank tensors;
};

/// Returns what the ranks of traces do, as a workload for the event loop and any machine.
///
///   COMP             kernels: their durations if any node of the traces has one, else opaque
///                    operators (graph/operator.h) of num_ops and tensor_size. One at a time, as
///                    they become ready
///   on the CPU       its duration, whatever type it has; one at a time, as they become ready,
///                    beside the kernels
///   COMM_COLL        collective of the rank's communicator. The buffer is comm_size, of an
///                    all-gather comm_size x members. Reduce is a broadcast backwards, of the same
///                    time; a barrier an all-reduce of one byte. Collectives of one communicator
///                    run one after the other
///   COMM_SEND, RECV  message; received in the order sent, if tag and size are equal. All at once
///   MEM_LOAD, STORE  copy from, to memory_tier; loads one after the other, and so stores
///   METADATA         nothing
///
/// Nodes start when their dependencies have ended. Collectives of one communicator are issued in
/// the order in which a program lists them, ids ascending but every node after its dependencies.
///
/// One role per distinct program (two where a program's slots mean communicators of different
/// families), which issues one instance of one template. Communicators are families by digits of
/// the rank number where they are regular, so that ranks fold. The one phase is "compute"; a
/// category of exposed time per family comes first, then messages, memory and cpu.
///
/// Tensors are allocations of the one row "tensors" of Workload::memory, with the lifetimes of
/// template_tensors.h; Role::state is what of them is there at the begin. There is no row where no
/// trace has a tensor.
///
/// Ignores: priorities, times of communication nodes, the order of ranks within a group.
/// Requires: traces as load() gives them.
/// Mistakes, by rank and node: gathers and scatters (the trace does not say who their root is);
/// involved_dim that does not fit the dimensions; messages to the own rank, to ranks that do not
/// exist, and such without counterpart; too many communicators that share ranks; members of a
/// communicator that do not issue the same collectives in the same order; those of `tensors`.
Result<graph::Workload> to_workload(const TraceSet& traces, const ToWorkloadOptions& options = {});

}  // namespace orrery::chakra
