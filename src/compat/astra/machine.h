// SPDX-License-Identifier: Apache-2.0
/// ASTRA-sim's configuration for Orrery's own event loop (src/simulate), beside run(), which keeps
/// ASTRA-sim's semantics. docs/models/astra.md says where the two differ.
#pragma once

#include <string_view>
#include <vector>

#include "base/result.h"
#include "collective/cost.h"
#include "compat/astra/run.h"
#include "machine/machine.h"

namespace orrery::astra {

/// Field of the memory file; all others that mistakes name here are the system file's.
inline constexpr std::string_view kMemoryType = "memory-type";

/// Mistakes (fields of the system file, with no file): what the traces are to do and the event loop
/// cannot, on whatever machine: custom collectives, replay-only.
Result<void> check_portable(const System& system);

/// Returns the dimensions as a machine has them: what machine_of() says of the network; `overhead`
/// of every message.
std::vector<topology::NetworkDimension> network_of(const std::vector<Dimension>& network,
                                                   Time overhead);

/// Returns the machine that the files describe.
///
///   network        a device's bandwidth is that of all its links (Ring of more than two: 2,
///                  FullyConnected: n-1, Switch: 1), a switch's latency that of its two hops
///   messages       cost endpoint-delay x `injection_scale` each, besides
///   computing      with roofline-enabled max(operations / peak-perf, bytes / local-mem-bw);
///                  without it takes no time but the durations of the traces
///   remote memory  the same server per device, node or pool
///
/// Ignores: chunks and their queues, what reductions cost, capacities.
/// Mistakes (as above; memory-type is of the memory file): model-shared-bus; remote accesses in the
/// traces, but no remote memory.
Result<machine::Machine> machine_of(const RunInput& input, double injection_scale);

/// Returns the algorithm that the implementation lists of the operations in the traces ask for. Of
/// one dimension, and of lists of equal entries direct or halvingDoubling, that algorithm; oneRing
/// is one ring, Themis Themis; other lists of several dimensions run dimension by dimension
/// (hierarchical), and what has no counterpart is automatic.
collective::CollectiveAlgorithm algorithm_of(const RunInput& input);

}  // namespace orrery::astra
