// SPDX-License-Identifier: Apache-2.0
/// Packets on fat trees, for the tests of this folder.
#pragma once

#include <string>
#include <vector>

#include "machine/network/packets/packet.h"
#include "machine/topology/makers.h"

namespace orrery::packets {

using network::FlowRequest;
using network::PacketOptions;
using network::Protocol;

inline topology::LinkGraph tree(int k, const std::string& rate) {
  return *topology::parse_topology("fat_tree:k=" + std::to_string(k) + ",bandwidth=" + rate,
                                   "test");
}

inline PacketRun run_packets_on(const topology::LinkGraph& graph,
                                const std::vector<FlowRequest>& flows,
                                const PacketOptions& options) {
  topology::Router router(graph, topology::Routing::ecmp, 1);
  return *run_packets(router, flows, options);
}

}  // namespace orrery::packets
