// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "base/result.h"
#include "compat/astra/network.h"
#include "compat/astra/run.h"
#include "machine/topology/link_map.h"

namespace orrery::astra {

/// Returns a network of the links of all dimensions that messages share as a model of
/// machine/network says (Backend fifo, flow, flit, packet).
///
///   route    that of the LinkMap, which crosses every dimension in which the ends differ
///   arrival  floor(time of the last byte + latency of the last link), in ns: alone with flow, what
///            the unaware network says of one dimension. flit: its last cycle, rounded up. packet:
///            its last packet, of the default protocol, rounded up
///
/// The model has a clock of its own, in picoseconds, which follows the run's. Requires
/// check_linked().
std::unique_ptr<Network> linked_network(Backend backend, const std::vector<Dimension>& network,
                                        const topology::Wires& wires);

/// Mistakes: flits on `wires`, and what the models' own check() says.
Result<void> check_linked(Backend backend, const std::vector<Dimension>& network,
                          const topology::Wires& wires);

}  // namespace orrery::astra
