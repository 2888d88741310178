// SPDX-License-Identifier: Apache-2.0
/// Hops of trees, of clusters of switches and of dragonflies.
#include "machine/network/flit/routing.h"

namespace orrery::flit {

Candidate Routing::tree_hop(const RouteState& state, std::uint32_t router,
                            std::uint32_t draw) const {
  if (graph_->shape == Shape::tree) {
    return {nearer_.of(router, eject_router(state))[draw], all_};
  }
  if (graph_->shape == Shape::switch_clusters) {
    const auto links = static_cast<std::uint32_t>(graph_->extents[1]);
    return {channel(router, eject_router(state) * links + draw), all_};
  }
  const auto k = static_cast<std::uint32_t>(graph_->extents[0]);
  if (goes_down(state, router)) {
    return {channel(router, fat_tree_goal(state) / (weight_below(router) / k) % k), all_};
  }
  return {channel(router, k + draw), all_};  // up
}

/// Returns the place of the router that a packet leaves a fat tree at.
std::uint32_t Routing::fat_tree_goal(const RouteState& state) const {
  const auto n = static_cast<std::uint32_t>(graph_->extents.size());
  return eject_router(state) % (static_cast<std::uint32_t>(graph_->routers) / n);
}

/// Returns k to the digits that ways down from a router of a fat tree set.
std::uint32_t Routing::weight_below(std::uint32_t router) const {
  const auto n = static_cast<std::uint32_t>(graph_->extents.size());
  const std::uint32_t wide = static_cast<std::uint32_t>(graph_->routers) / n;
  std::uint32_t weight = 1;
  for (std::uint32_t i = router / wide + 1; i < n; ++i) {
    weight *= static_cast<std::uint32_t>(graph_->extents[0]);
  }
  return weight;
}

bool Routing::goes_down(const RouteState& state, std::uint32_t router) const {
  const auto n = static_cast<std::uint32_t>(graph_->extents.size());
  const std::uint32_t wide = static_cast<std::uint32_t>(graph_->routers) / n;
  const std::uint32_t weight = weight_below(router);
  return router % wide / weight == fat_tree_goal(state) / weight;
}

/// A class of VCs for every group that the route touches, with the link that leads to it. Of
/// BookSim's ugal phase 1 begins at the drawn node's router, or at once without one.
Candidate Routing::dragonfly_hop(RouteState& state, std::uint32_t router) const {
  const auto a = static_cast<std::uint32_t>(graph_->extents[0]);
  const auto h = static_cast<std::uint32_t>(graph_->extents[1]);
  const bool detours = on_detour(state, router);
  const std::uint32_t goal = detours ? state.via : eject_router(state);
  if (follows_booksim() && !detours) {
    state.phase = std::max(state.phase, first_phase());
  }
  const std::uint32_t group = router / a;
  if (group == goal / a) {
    return {channel(router, goal % a), dragonfly_vcs(state.phase)};
  }
  const std::uint32_t link = goal / a - (goal / a > group ? 1 : 0);
  if (link / h != router % a) {
    return {channel(router, link / h), dragonfly_vcs(state.phase)};
  }
  if (!follows_booksim() || !detours) {
    ++state.phase;
  }
  return {channel(router, a + link % h), dragonfly_vcs(state.phase)};
}

}  // namespace orrery::flit
