// SPDX-License-Identifier: Apache-2.0
#include "machine/network/packets/packet.h"

#include <fmt/format.h>

#include <cassert>
#include <cmath>
#include <optional>
#include <utility>

#include "base/lists.h"
#include "machine/network/packets/packet_network.h"

namespace orrery::packets {
namespace {

constexpr double kMostPasses = 2e10;

/// Returns the links of a route by hash; nothing: none leads there.
std::optional<std::vector<std::int32_t>> links_of(topology::Router& router,
                                                  const network::FlowRequest& flow,
                                                  std::uint64_t key) {
  std::vector<topology::Hop> hops;
  const bool found = flow.via.empty()
                         ? router.route(flow.source, flow.target, key, hops)
                         : router.through(flow.source, flow.via.all(), flow.target, key, hops);
  if (!found) {
    return std::nullopt;
  }
  return mapped(hops,
                [&](const topology::Hop& hop) { return static_cast<std::int32_t>(hop.link); });
}

/// Acknowledgements among packets have a hash of their own, as flows the other way.
void lay_return_routes(PacketNetwork& network, topology::Router& router,
                       const std::vector<network::FlowRequest>& flows) {
  for (std::size_t f = 0; f < flows.size() && !network.rules().trims(); ++f) {
    const network::FlowRequest back{.source = flows[f].target, .target = flows[f].source};
    if (const auto links =
            links_of(router, back, topology::mixed(~static_cast<std::uint64_t>(f)))) {
      network.add_return_route(f, *links);
    }
  }
}

/// Packets times links of all flows.
double passes(const PacketNetwork& network, const std::vector<network::FlowRequest>& flows,
              const std::vector<std::size_t>& links) {
  double sum = 0;
  for (std::size_t f = 0; f < flows.size(); ++f) {
    sum += std::ceil(static_cast<double>(flows[f].bytes.value()) /
                     static_cast<double>(network.rules().payload())) *
           static_cast<double>(links[f]);
  }
  return sum;
}

}  // namespace

PacketRun run_packets(const topology::LinkGraph& graph,
                      const std::vector<network::FlowRequest>& flows,
                      const std::vector<std::vector<std::int32_t>>& routes,
                      const network::PacketOptions& options) {
  PacketNetwork network(graph, flows, options);
  for (std::size_t f = 0; f < flows.size(); ++f) {
    network.add_path(f, routes[f]);
  }
  topology::Router router(graph, topology::Routing::ecmp, options.seed);
  lay_return_routes(network, router, flows);
  PacketRun run = network.run();
  assert(network.all_ended() && "every flow ends");
  return run;
}

Result<PacketRun> run_packets(topology::Router& router,
                              const std::vector<network::FlowRequest>& flows,
                              const network::PacketOptions& options, PacketProgress progress) {
  PacketNetwork network(router.graph(), flows, options);
  // A sprayed route is all routes at once; a packet takes one.
  const bool sprays = router.routing() == topology::Routing::spray;
  topology::Router by_hash(router.graph(), topology::Routing::ecmp, router.seed());
  topology::Router& of_packets = sprays ? by_hash : router;
  const bool many =
      sprays || (trims(options.protocol) && router.routing() != topology::Routing::shortest);
  const std::int64_t usual = options.paths > 0 ? options.paths : many ? 64 : 1;
  std::vector<std::size_t> length(flows.size());
  for (std::size_t f = 0; f < flows.size(); ++f) {
    const std::int64_t paths = flows[f].via.empty() ? usual : 1;
    for (std::int64_t path = 0; path < paths; ++path) {
      const auto key = topology::mixed(f) + static_cast<std::uint64_t>(path);
      const auto links = links_of(of_packets, flows[f], key);
      if (!links) {
        return fail(no_route(router.graph(), flows[f]));
      }
      network.add_path(f, *links);
      length[f] = links->size();
    }
  }
  const double work = passes(network, flows, length);
  network.tell(std::move(progress), work);
  if (options.steady <= 0 && work > kMostPasses) {
    return fail(
        fmt::format("packets pass links about {:.1e} times, at most {:.0e} end within hours; send "
                    "less, skip steady phases, or take flows",
                    work, kMostPasses));
  }
  lay_return_routes(network, of_packets, flows);
  if (network.needs_return_route()) {
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

}  // namespace orrery::packets
