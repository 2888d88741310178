// SPDX-License-Identifier: Apache-2.0
/// Traffic is what a step moves.
#pragma once

#include <vector>

#include "collective/cost.h"
#include "graph/workload.h"
#include "machine/compute/clock.h"
#include "machine/machine.h"

namespace orrery::study {

/// Bytes of one step, and what its kernels ask of the devices; all devices together.
struct Traffic {
  std::vector<double> tiers;             ///< read or written, by memory tier
  std::vector<double> links;             ///< sent, by network dimension
  std::vector<compute::Load> kernels{};  ///< at their tables' rate, by device group
};

/// Kernels move Operator::bytes through the first tier; a copy its bytes through the first and its
/// own (of the remote memory through the first alone: what it costs there is not known). Of a
/// collective of p members over a buffer of S bytes (Node::bytes) a member sends
///
///   all_reduce                            2 (p-1)/p S      (added up by the switch: (1 + 1/p) S)
///   all_gather, reduce_scatter            (p-1)/p S
///   all_to_all                            (p-1)/p S
///   broadcast                             (p-1)/p S        (sum over members (p-1) S)
///   send_recv, send                       S
///
/// whatever the algorithm, because ring and tree send the same in all. With P_d the members within
/// dimensions up to d (P of the innermost's inside: 1), dimension d carries of it
///
///   1/P_{d-1} - 1/P_d, the outermost 1/P_{d-1}     neighbours in a ring or tree
///   (P_d - P_{d-1}) / (p - 1)                      all_to_all: peers at that distance
///
/// Sends count in the outermost dimension that they cross.
/// Ignores: hops (a message over three links of a torus counts once), headers, retries.
/// Requires: a machine of exactly layout.ranks() devices.
Traffic traffic_of(const graph::Workload& workload, const machine::Machine& machine,
                   const collective::AlgorithmChoice& algorithms);

}  // namespace orrery::study
