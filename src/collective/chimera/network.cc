// SPDX-License-Identifier: Apache-2.0
#include "collective/chimera/network.h"

#include <cassert>

namespace orrery::chimera {
namespace {

constexpr flit::Cycle kLink = 100;
constexpr std::int32_t kBetweenSwitches = 8;  // parallel links
constexpr std::uint64_t kSeed = 0;            // of ways at random, as the artifact's

flit::RouterGraph graph_of(Topology topology, const Extents& extents) {
  switch (topology) {
    case Topology::mesh2d:
      return flit::make_grid(flit::Shape::mesh, {extents[0], extents[1]});
    case Topology::torus2d:
      return flit::make_grid(flit::Shape::torus, {extents[0], extents[1]});
    case Topology::torus3d:
      return flit::make_grid(flit::Shape::torus, {extents[0], extents[1], extents[2]});
    case Topology::two_switch:
      return flit::make_switch_clusters(extents[1], extents[0], kBetweenSwitches);
  }
  return {};
}

}  // namespace

Extents published_extents(Topology topology) {
  switch (topology) {
    case Topology::mesh2d:
      return {5, 5, 1};
    case Topology::torus2d:
      return {4, 4, 1};
    case Topology::torus3d:
      return {2, 2, 2};
    case Topology::two_switch:
      return {8, 2, 1};
  }
  return {};
}

Network::Network(Topology topology, const Extents& extents)
    : topology_(topology), extents_(extents) {
  const bool switches = is_switch();
  router_ = {.vcs = 4,
             .buffer = 318,
             .routing_delay = switches ? 1 : 0,
             .credit_delay = switches ? 1 : 2,
             .vc_allocator = flit::Allocator::islip,
             .sw_allocator = flit::Allocator::islip,
             .flow_control = flit::FlowControl::cut_through};
  graph_ = std::make_unique<flit::RouterGraph>(graph_of(topology, extents));
  for (flit::Channel& channel : graph_->channels) {
    channel.latency = kLink;
  }
  for (flit::Node& node : graph_->nodes) {
    node.latency = switches ? kLink : 1;
  }
  auto routing = flit::Routing::make(*graph_, flit::default_algorithm(graph_->shape), router_.vcs);
  assert(routing && "four virtual channels are enough for every topology");
  routing_ = std::make_unique<flit::Routing>(std::move(*routing));
}

std::uint32_t Network::node(const Block& block, std::int32_t rank) const {
  std::int32_t number = 0;
  std::int32_t stride = 1;
  for (std::size_t d = 0; d < extents_.size(); ++d) {
    number += (block.origin[d] + rank % block.extents[d]) * stride;
    rank /= block.extents[d];
    stride *= extents_[d];
  }
  return static_cast<std::uint32_t>(number);
}

flit::LoopResult Network::run(const flit::LoopSchedule& schedule, bool shortcuts) const {
  return run_closed_loop(*routing_, router_, {}, schedule, kSeed, {shortcuts, {}});
}

}  // namespace orrery::chimera
