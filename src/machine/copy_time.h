// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "base/units.h"
#include "graph/workload.h"
#include "machine/machine.h"

namespace orrery::machine {

/// Returns the time that a workload's copy between a device's memory and a lower tier takes alone.
///
///   host, storage   latency + bytes / bandwidth of the tier           (memory/pipeline.h); more
///                   while others move over the port that it goes `through`
///   remote memory   that of an access by all ranks of the workload    (memory/remote_memory.h)
///
/// sharers: communicators whose members move the same bytes (Node::sharers); how many of them share
/// a node is taken from rank 0's. Requires: a machine with that memory.
Time copy_time(const graph::Workload& workload, Bytes bytes, int tier, graph::GroupIndex sharers,
               const Machine& machine);

/// Returns the part of it that a copy which goes on with the one before it does not pay
/// (Node::continues).
Time copy_latency(int tier, const Machine& machine);

/// The port that copies of a tier pass (MemoryTier::through), up() of its dimension out of the
/// device and down() into it. None: it passes no port, or the machine has no such tier.
struct CopyPort {
  int dimension = 0;
  double share =
      1;  ///< of its rate, that a copy alone takes: the tier's over the dimension's, <= 1
};
std::optional<CopyPort> copy_port(int tier, const Machine& machine);

}  // namespace orrery::machine
