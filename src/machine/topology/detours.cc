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

std::span<const Hop> Detours::instead_of(std::span<const Hop> way) {
  if (way.empty()) {
    return way;
  }
  if (const auto planned = instead_.find(way.data()); planned != instead_.end()) {
    return planned->second;
  }
  const bool broken =
      std::ranges::any_of(way, [&](const Hop& hop) { return !lost_.empty() && lost_[hop.link]; });
  if (!broken) {
    return way;
  }
  auto other = around(way);
  const std::span<const Hop> now = other ? ways_.emplace_back(std::move(*other)) : way;
  plan(way, now);
  return now;
}

std::optional<std::vector<Hop>> Detours::around(std::span<const Hop> way) {
  if (!router_) {
    router_.emplace(graph_, routing_, seed_, lost_);
  }
  const GraphLink& first = link_of(way.front());
  const GraphLink& last = link_of(way.back());
  if (first.source < 0 || first.joint || last.joint || first.pipe) {
    return std::nullopt;  // which host is meant, or what it gets, is not told by the link
  }
  std::vector<Hop> hops;
  const auto key =
      static_cast<std::uint64_t>(first.source) << 32U | static_cast<std::uint64_t>(last.target);
  if (!router_->route(first.source, last.target, key, hops)) {
    return std::nullopt;
  }
  // The first links of a sprayed way carry equal parts.
  const auto parts = static_cast<double>(std::ranges::count_if(
      way, [&](const Hop& hop) { return link_of(hop).source == first.source; }));
  const double efficiency = way.front().bandwidth / first.bandwidth / parts;
  Time additional{0};
  std::int32_t at = first.source;
  for (const Hop& hop : way) {
    const bool next = link_of(hop).source == at;  // of a sprayed way the first at every fork
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
