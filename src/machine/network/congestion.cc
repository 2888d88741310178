// SPDX-License-Identifier: Apache-2.0
#include "machine/network/congestion.h"

#include <algorithm>
#include <cmath>

namespace orrery::network {
namespace {

constexpr double kPathIds = 64;

}  // namespace

Congestion::Congestion(const topology::LinkGraph& graph, const FlowOptions& options)
    : graph_(graph), options_(options), links_(graph.links.size()) {}

void Congestion::enter(TransferId id, std::span<const topology::Hop> route) {
  if (id >= routes_.size()) {
    routes_.resize(id + 1);
  }
  routes_[id] = route;
  count(route, true);
}

void Congestion::leave(TransferId id) {
  count(routes_[id], false);
  routes_[id] = {};
}

void Congestion::touch(topology::LinkId link) {
  if (!links_[link].touched) {
    links_[link].touched = true;
    touched_.push_back(link);
  }
}

void Congestion::count(std::span<const topology::Hop> route, bool enters) {
  for (const topology::Hop& hop : route) {
    Link& link = links_[hop.link];
    const double share =
        std::min(1.0, graph_.links[hop.link].bandwidth.value() / hop.bandwidth.value());
    link.flows += enters ? 1 : -1U;
    link.shares = link.flows == 0 ? 0 : link.shares + (enters ? share : -share);
    touch(hop.link);
  }
}

void Congestion::count_blocked() {
  for (Link& link : links_) {
    link.blocked = 0;
  }
  for (const std::span<const topology::Hop> route : routes_) {
    std::uint32_t most = 0;  // flows of the links behind
    for (std::size_t h = route.size(); h-- > 0;) {
      Link& link = links_[route[h].link];
      link.blocked += most > link.flows ? 1 : 0;
      most = std::max(most, link.flows);
      touch(route[h].link);
    }
  }
}

double Congestion::factor(topology::LinkId id) const {
  const Link& link = links_[id];
  if (link.flows == 0) {
    return 1;
  }
  const double flows = link.flows;
  double slower = 1 + options_.head_of_line * link.blocked / flows;
  const std::int32_t target = graph_.links[id].target;
  if (target >= 0 &&
      graph_.vertices[static_cast<std::size_t>(target)].kind == topology::VertexKind::host) {
    slower *= 1 + options_.incast_penalty * (1 - 1 / flows);
  }
  const double routes = flows / link.shares;
  if (routes > 1) {
    slower *= 1 + options_.spray_imbalance * std::sqrt((routes - 1) / (kPathIds * flows));
  }
  return 1 / slower;
}

void Congestion::settle(FairNetwork& network) {
  if (touched_.empty()) {
    return;
  }
  if (options_.head_of_line > 0) {
    count_blocked();
  }
  for (const topology::LinkId link : touched_) {
    links_[link].touched = false;
    network.scale(link, factor(link));
  }
  touched_.clear();
}

}  // namespace orrery::network
