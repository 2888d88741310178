// SPDX-License-Identifier: Apache-2.0
/// Routing finds here the hops of each algorithm on each shape.
#include <algorithm>
#include <cstdlib>

#include "machine/network/flit/routing.h"

namespace orrery::flit {

std::uint32_t Routing::draws(const RouteState& state, std::uint32_t router) const {
  if (trees_) {
    return trees_->choices(router, eject_router(state));
  }
  if (graph_->shape != Shape::torus || traits_.has_table()) {
    return 1;
  }
  RouteState moved = state;
  const std::uint32_t to = goal(moved, router);
  for (std::size_t d = 0; d < ports_.dimensions(); ++d) {
    const std::int32_t distance = std::abs(ports_.coordinate(to, d) - ports_.coordinate(router, d));
    if (distance != 0) {
      const bool entering = moved.dimension != static_cast<std::int8_t>(d);
      return entering && 2 * distance == extent(d) ? 2 : 1;
    }
  }
  return 1;
}

Candidate Routing::single(RouteState& state, std::uint32_t router, std::uint32_t draw) const {
  if (traits_.goes_by_groups()) {
    return dragonfly_hop(state, router);
  }
  const std::uint32_t to = goal(state, router);
  switch (traits_.algorithm) {
    case Algorithm::dor:
    case Algorithm::valiant:
    case Algorithm::ugal:
    case Algorithm::romm:
    case Algorithm::adaptive: {
      if (graph_->shape == Shape::torus) {
        return torus_hop(state, router, to, draw);
      }
      const bool butterfly = graph_->shape == Shape::flattened_butterfly;
      const bool at_target = !butterfly && router == eject_router(state);
      return {butterfly ? butterfly_hop(router, to) : mesh_hop(router, to, false),
              traits_.has_two_phases() ? vcs_.of_phase(state.phase, at_target) : vcs_.all()};
    }
    case Algorithm::yx:
      return {mesh_hop(router, to, true), vcs_.all()};
    case Algorithm::o1turn:
    case Algorithm::adaptive_xy_yx:
      return {mesh_hop(router, to, state.phase == 1), vcs_.half(state.phase)};
    case Algorithm::nca:
      return {trees_->channel(ports_, router, to, draw), vcs_.all()};
    case Algorithm::dest_tag:
      return {fly_hop(router, state.target), vcs_.all()};
    case Algorithm::min:
    case Algorithm::up_down: {
      const std::uint32_t port = table_.channel(state.phase, router, to);
      state.phase = table_.is_down(port) ? 1 : state.phase;
      return {port, vcs_.all()};
    }
  }
  return {kNoChannel, 0};
}

std::uint32_t Routing::mesh_hop(std::uint32_t router, std::uint32_t goal,
                                bool highest_first) const {
  for (std::size_t i = 0; i < ports_.dimensions(); ++i) {
    const std::size_t d = highest_first ? ports_.dimensions() - 1 - i : i;
    const std::int32_t ahead = ports_.coordinate(goal, d) - ports_.coordinate(router, d);
    if (ahead != 0) {
      const std::uint32_t express = express_channel(router, d, ahead);
      return express != kNoChannel ? express : ports_.channel(router, 2 * d + (ahead > 0 ? 0 : 1));
    }
  }
  return kNoChannel;
}

/// Returns the express channel of a concentrated mesh along an edge in dimension d, where at least
/// half of it is ahead.
std::uint32_t Routing::express_channel(std::uint32_t router, std::size_t d,
                                       std::int32_t ahead) const {
  if (graph_->shape != Shape::cmesh || 2 * std::abs(ahead) < extent(d)) {
    return kNoChannel;
  }
  const std::size_t other = 1 - d;
  const std::int32_t at = ports_.coordinate(router, other);
  if (at == 0) {
    return ports_.channel(router, 2 * other + 1);
  }
  return at + 1 == extent(other) ? ports_.channel(router, 2 * other) : kNoChannel;
}

/// The class is chosen on entering a dimension and kept in it: the half of the packets that wrap on
/// the way up, and of those that do not on the way down. No channel of either ring of a half is
/// followed by itself, so neither can be held in a circle.
Candidate Routing::torus_hop(RouteState& state, std::uint32_t router, std::uint32_t goal,
                             std::uint32_t draw) const {
  for (std::size_t d = 0; d < ports_.dimensions(); ++d) {
    const std::int32_t from = ports_.coordinate(router, d);
    const std::int32_t to = ports_.coordinate(goal, d);
    if (from == to) {
      continue;
    }
    if (state.dimension != static_cast<std::int8_t>(d)) {
      const std::int32_t length = extent(d);
      const std::int32_t ahead = (to - from + length) % length;
      const bool up = 2 * ahead == length ? draw != 0 : 2 * ahead < length;
      state.dimension = static_cast<std::int8_t>(d);
      state.up = up ? 1 : 0;
      state.ring = to < from ? 1 : 0;
    }
    return {ports_.channel(router, 2 * d + (state.up != 0 ? 0 : 1)),
            vcs_.of_ring(state.ring, state.phase, router == eject_router(state))};
  }
  return {kNoChannel, 0};
}

std::uint32_t Routing::butterfly_hop(std::uint32_t router, std::uint32_t goal) const {
  std::size_t port = 0;
  for (std::size_t d = 0; d < ports_.dimensions(); ++d) {
    const std::int32_t to = ports_.coordinate(goal, d);
    if (ports_.coordinate(router, d) != to) {
      return ports_.channel(router, port + static_cast<std::size_t>(to));
    }
    port += static_cast<std::size_t>(extent(d));
  }
  return kNoChannel;
}

std::uint32_t Routing::fly_hop(std::uint32_t router, std::uint32_t target) const {
  const auto k = static_cast<std::uint32_t>(extent(0));
  const auto n = static_cast<std::uint32_t>(graph_->extents.size());
  const std::uint32_t stage = router / (static_cast<std::uint32_t>(graph_->routers) / n);
  std::uint32_t digits = target;
  for (std::uint32_t i = stage + 1; i < n; ++i) {
    digits /= k;
  }
  return ports_.channel(router, digits % k);
}

/// A class of VCs for every group that the route touches, with the link that leads to it. Of
/// BookSim's ugal phase 1 begins at the drawn node's router, or at once without one.
Candidate Routing::dragonfly_hop(RouteState& state, std::uint32_t router) const {
  const auto a = static_cast<std::uint32_t>(extent(0));
  const auto h = static_cast<std::uint32_t>(extent(1));
  const bool detours = on_detour(state, router);
  const std::uint32_t goal = detours ? state.via : eject_router(state);
  if (traits_.follows_booksim() && !detours) {
    state.phase = std::max(state.phase, traits_.first_phase());
  }
  const std::uint32_t group = router / a;
  if (group == goal / a) {
    return {ports_.channel(router, goal % a), vcs_.of_group(state.phase)};
  }
  const std::uint32_t link = goal / a - (goal / a > group ? 1 : 0);
  if (link / h != router % a) {
    return {ports_.channel(router, link / h), vcs_.of_group(state.phase)};
  }
  if (!traits_.follows_booksim() || !detours) {
    ++state.phase;
  }
  return {ports_.channel(router, a + link % h), vcs_.of_group(state.phase)};
}

void Routing::adaptive(RouteState& state, std::uint32_t router, Candidates& into) const {
  const bool torus = graph_->shape == Shape::torus;
  const VcMask escapes = torus ? 0b11 : 0b1;
  const std::uint32_t to = goal(state, router);
  Candidate escape{kNoChannel, 0};
  for (std::size_t d = 0; d < ports_.dimensions(); ++d) {
    const std::int32_t from = ports_.coordinate(router, d);
    const std::int32_t ahead = ports_.coordinate(to, d) - from;
    if (ahead == 0) {
      continue;
    }
    const std::int32_t length = extent(d);
    const bool up = torus ? 2 * ((ahead + length) % length) <= length : ahead > 0;
    const std::uint32_t port = ports_.channel(router, 2 * d + (up ? 0 : 1));
    if (escape.port == kNoChannel) {  // dor; another VC before the end of the ring than after it
      const bool wraps = torus && up == (ahead < 0);
      escape = {port, VcMask{1} << (wraps ? 1U : 0U)};
    }
    into.add(port, vcs_.all() & ~escapes);
  }
  into.preferred = into.count;
  into.add(escape.port, escape.vcs);
}

/// BookSim's: `escape`, the output of dor, comes behind the others.
void Routing::escaping(const RouteState& state, std::uint32_t router, const Candidate& escape,
                       Candidates& into) const {
  constexpr VcMask kBehindTwoEscapes = VcMask{1} << 3U;
  const bool torus = graph_->shape == Shape::torus;
  if (state.phase == 0 && !torus) {
    into.add(escape.port, vcs_.all() & ~VcMask{1});
  } else if (state.phase == 0) {
    const auto d = static_cast<std::size_t>(state.dimension);
    const std::int32_t length = extent(d);
    const std::int32_t ahead =
        (ports_.coordinate(eject_router(state), d) - ports_.coordinate(router, d) + length) %
        length;
    into.add(ports_.channel(router, 2 * d + (2 * ahead < length ? 0 : 1)), kBehindTwoEscapes);
  }
  into.preferred = into.count;
  into.add(escape.port, VcMask{1} << (torus ? state.ring : 0U));
}

}  // namespace orrery::flit
