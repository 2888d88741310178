// SPDX-License-Identifier: Apache-2.0
#include "machine/read_shared.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/format.h"
#include "machine/machine.h"

namespace orrery::machine {
namespace {

void read_peer_shares(Reader& dimension, topology::NetworkDimension& into) {
  topology::PeerShare before{.peers = 1, .share = 1};
  for (const ConfigNode* node : dimension.take_items("bandwidth_by_peers", false)) {
    Reader read(*node);
    topology::PeerShare at;
    at.peers = read.required<std::int64_t>("peers");
    at.share = read.required<double>("share");
    read.require(at.peers > before.peers && at.peers <= kMostDevices, "peers",
                 fmt::format("a whole number above {}: 2 or more, rising", before.peers));
    read.require(at.share > 0 && at.share <= before.share, "share",
                 fmt::format("a share above 0 and at most {}: more peers do not get more",
                             exact_text(before.share)));
    before = dimension.absorb(read.finish(at));
    into.bandwidth_by_peers.push_back(before);
  }
  dimension.require(
      into.bandwidth_by_peers.empty() || into.kind == topology::DimensionKind::switched,
      "bandwidth_by_peers", "nothing; only devices on a switch exchange with many over one port");
}

}  // namespace

void read_shared(Reader& read, const std::vector<topology::NetworkDimension>& inside,
                 topology::NetworkDimension& dimension) {
  const bool is_switch = dimension.kind == topology::DimensionKind::switched;
  const bool found =
      std::any_of(inside.begin(), inside.end(), [&](const topology::NetworkDimension& inner) {
        return inner.name == dimension.through && inner.kind == topology::DimensionKind::switched;
      });
  read.require(dimension.through.empty() || (is_switch && found), "through",
               "the name of a switch inside this one; of kind switch only");
  if (const auto shared = read.maybe<Bandwidth>("node_bandwidth")) {
    read.require(is_switch && !inside.empty() && *shared > Bandwidth(0), "node_bandwidth",
                 "a rate above 0 of what the devices inside share; of a switch outside another "
                 "dimension only");
    dimension.node_bandwidth = *shared;
  }
  read_peer_shares(read, dimension);
}

}  // namespace orrery::machine
