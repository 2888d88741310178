// SPDX-License-Identifier: Apache-2.0
#include "machine/network/packet.h"

#include <cassert>

#include "machine/network/packet_network.h"

namespace orrery::network {

PacketRun run_packets(const topology::LinkGraph& graph, const std::vector<FlowRequest>& flows,
                      const std::vector<std::vector<std::int32_t>>& ways,
                      const PacketOptions& options) {
  packets::PacketNetwork network(graph, flows, options);
  for (std::size_t f = 0; f < flows.size(); ++f) {
    network.add_path(f, ways[f]);
  }
  PacketRun run = network.run();
  assert(network.all_ended() && "every flow ends");
  return run;
}

Result<PacketRun> run_packets(topology::Router& router, const std::vector<FlowRequest>& flows,
                              const PacketOptions& options) {
  packets::PacketNetwork network(router.graph(), flows, options);
  // A sprayed way is all ways at once; a packet takes one.
  const bool sprays = router.routing() == topology::Routing::spray;
  topology::Router by_hash(router.graph(), topology::Routing::ecmp, router.seed());
  topology::Router& of_packets = sprays ? by_hash : router;
  const bool many = sprays || (packets::trims(options.protocol) &&
                               router.routing() != topology::Routing::shortest);
  const std::int64_t paths = options.paths > 0 ? options.paths : many ? 64 : 1;
  std::vector<topology::Hop> hops;
  std::vector<std::int32_t> links;
  for (std::size_t f = 0; f < flows.size(); ++f) {
    for (std::int64_t path = 0; path < paths; ++path) {
      hops.clear();
      const auto key = topology::mixed(f) + static_cast<std::uint64_t>(path);
      if (!of_packets.route(flows[f].source, flows[f].target, key, hops)) {
        return fail("no way leads from host " + std::to_string(flows[f].source) + " to host " +
                    std::to_string(flows[f].target));
      }
      links.clear();
      for (const topology::Hop& hop : hops) {
        links.push_back(static_cast<std::int32_t>(hop.link));
      }
      network.add_path(f, links);
    }
  }
  if (network.needs_way_back()) {
    return fail("acknowledgements of " + std::string(name_of(options.protocol)) +
                " go back among packets, and a link on a way has none that leads back");
  }
  PacketRun run = network.run();
  if (!network.all_ended()) {
    return fail("flows of " + std::string(name_of(options.protocol)) +
                " that wait for something that never comes: a fault of the model");
  }
  return run;
}

}  // namespace orrery::network
