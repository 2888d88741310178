// SPDX-License-Identifier: Apache-2.0
/// Fusion of a workload's communication: sums that leave a stage become shards on the way.
///
///   all_reduce over a group, then every rank of it sends all of the sum
///     -> reduce_scatter, every rank sends its slice, all_gather where it arrives
///   all_reduce over a group, then every rank sends its own slice of the sum (scatter-gather)
///     -> reduce_scatter, the same messages
///
/// With p ranks and M bytes, bytes that a rank sends: 2M(p-1)/p + M -> 2M(p-1)/p + M/p, and
/// 2M(p-1)/p + M/p + M(p-1)/p -> the same less M(p-1)/p.
///
/// Legal where (1) between the sum and the message there is nothing but work on elements or on
/// tokens - no product, no gradient of parameters, which adds over tokens - whose results nothing
/// else reads; (2) what arrives makes up what the receiver had; (3) the sum is added once, before
/// that work; (4) the group has as many ranks wherever the messages arrive. All messages of a
/// channel are fused or none, for receivers cannot tell. The work between becomes that of a shard.
/// With a machine they are fused only where that is faster, by prices of lone collectives and
/// messages.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "graph/workload.h"
#include "machine/machine.h"

namespace orrery::layout {

/// One place of a template where a sum is sent.
struct Fusion {
  std::string role;    ///< the first that runs the program
  std::string place;   ///< "forward chunk 0: proj_all_reduce -> send_activations"
  std::string reason;  ///< why not; empty: fused
  std::int64_t ranks = 0;
  Bytes before{0};  ///< that a rank sends, all_gather at the receiver included
  Bytes after{0};
  Time time_before{0};  ///< alone, one after the other; 0 without a machine
  Time time_after{0};
};

struct Fused {
  graph::Workload workload;
  std::vector<Fusion> fusions;
};

Fused fuse_communication(graph::Workload workload, const machine::Machine* machine);

}  // namespace orrery::layout
