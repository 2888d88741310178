// SPDX-License-Identifier: Apache-2.0
#include "machine/topology/detours.h"

#include <algorithm>

namespace orrery::topology {

Detours::Detours(const LinkGraph& graph, Routing routing, std::uint64_t seed)
    : graph_(graph),
      routing_(routing == Routing::spray || routing == Routing::shortest ? routing : Routing::ecmp),
      seed_(seed) {}

void Detours::set_lost(const std::vector<bool>& lost) {
  lost_ = lost;
  instead_.clear();
  router_.reset();
}

std::span<const Hop> Detours::instead_of(std::span<const Hop> route) {
  if (route.empty()) {
    return route;
  }
  if (const auto planned = instead_.find(route.data()); planned != instead_.end()) {
    return planned->second;
  }
  const bool broken =
      std::ranges::any_of(route, [&](const Hop& hop) { return !lost_.empty() && lost_[hop.link]; });
  if (!broken) {
    return route;
  }
  auto other = around(route);
  const std::span<const Hop> now = other ? routes_.emplace_back(std::move(*other)) : route;
  plan(route, now);
  return now;
}

std::optional<std::vector<Hop>> Detours::around(std::span<const Hop> route) {
  if (!router_) {
    router_.emplace(graph_, routing_, seed_, lost_);
  }
  const GraphLink& first = link_of(route.front());
  const GraphLink& last = link_of(route.back());
  if (first.source < 0 || first.joint || last.joint || first.pipe) {
    return std::nullopt;  // which host is meant, or what it gets, is not told by the link
  }
  std::vector<Hop> hops;
  const auto key =
      static_cast<std::uint64_t>(first.source) << 32U | static_cast<std::uint64_t>(last.target);
  if (!router_->route(first.source, last.target, key, hops)) {
    return std::nullopt;
  }
  // The first links of a sprayed route carry equal parts.
  const auto parts = static_cast<double>(std::ranges::count_if(
      route, [&](const Hop& hop) { return link_of(hop).source == first.source; }));
  const double efficiency = route.front().bandwidth / first.bandwidth / parts;
  Time additional{0};
  std::int32_t at = first.source;
  for (const Hop& hop : route) {
    const bool next = link_of(hop).source == at;  // of a sprayed route the first at every fork
    additional += hop.latency - (next ? link_of(hop).latency : Time(0));
    at = next ? link_of(hop).target : at;
  }
  for (Hop& hop : hops) {
    hop.bandwidth = hop.bandwidth * efficiency;
  }
  hops.front().latency += additional;
  return hops;
}

}  // namespace orrery::topology
