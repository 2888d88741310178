// SPDX-License-Identifier: Apache-2.0
/// ASTRA-sim's files -> config.h. Every mistake at once, with file and line; unknown keys are
/// mistakes (or go to `unknown`, a sentence each, where that is given), keys that ASTRA-sim
/// documents but never reads are warnings.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/config_node.h"
#include "base/result.h"
#include "compat/astra/config.h"
#include "compat/astra/quirks.h"

namespace orrery::astra {

inline constexpr double kGb = 1e9;  ///< bytes; ASTRA-sim's bandwidths are in GB/s, or B/ns

/// Parses a system. `warnings`: one sentence each, with file and line.
///
/// Numbers may be written as 4 or 4.0, switches as 0, 1, true or false, a list of one entry as the
/// entry. Missing keys: scheduling-policy LIFO, endpoint-delay 10, preferred-dataset-splits 1 (with
/// a warning: ASTRA-sim divides by zero), active-chunks-per-dimension 1, collective-optimization
/// localBWAware, local-mem-bw none (with a warning: reductions cost nothing), others off. An absent
/// implementation list stays empty: it is a mistake of the run that needs it.
///
/// Read although ASTRA-sim does not: inter-dimension-scheduling (themis, roundRobin, baseline; also
/// offlineGreedy and ascending, its older names) and intra-dimension-scheduling (SCF, FIFO; also
/// smallestFirst).
Result<System> parse_system(const ConfigNode& node, std::vector<std::string>& warnings,
                            std::vector<std::string>* unknown = nullptr);

/// Each implementation list has an entry per dimension, or begins with one* (oneRing ...), which
/// spans all dimensions. `node` is what `system` was parsed from.
Result<void> check_lists(const ConfigNode& node, const System& system, std::size_t dimensions);

/// Lists of equal length, innermost dimension first: topology, npus_count, bandwidth (GB/s, see
/// Quirk::gib_bandwidth), latency (ns). At most kMostNpus NPUs. The files of its ns-3 and htsim
/// back-ends (link_network.h) are mistakes here.
Result<std::vector<Dimension>> parse_network(const ConfigNode& node, const Quirks& quirks,
                                             std::vector<std::string>* unknown = nullptr);
inline constexpr std::int64_t kMostNpus = std::int64_t{1} << 24;

/// Messages list what can be read instead of another back-end's network file.
inline constexpr std::string_view kWhatIsRead =
    "topology, npus_count, bandwidth and latency, as its analytical back-end reads; or, for a "
    "network of single links, --logical-topology-configuration DIMS.json and --native";

/// Reads memory-type; other than NO_MEMORY_EXPANSION also remote-mem-latency (ns) and remote-mem-bw
/// (B/ns); PER_NODE_MEMORY_EXPANSION also num-nodes and num-npus-per-node.
Result<RemoteMemory> parse_memory(const ConfigNode& node,
                                  std::vector<std::string>* unknown = nullptr);

}  // namespace orrery::astra
