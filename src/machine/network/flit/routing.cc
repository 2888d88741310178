// SPDX-License-Identifier: Apache-2.0
#include "machine/network/flit/routing.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace orrery::flit {
namespace {

constexpr std::uint32_t kNoChannel = UINT32_MAX;

bool is_grid(Shape shape) {
  return shape == Shape::mesh || shape == Shape::torus || shape == Shape::cmesh;
}

bool has_waypoint(Algorithm algorithm) {
  return algorithm == Algorithm::romm || algorithm == Algorithm::valiant ||
         algorithm == Algorithm::ugal;
}

bool has_two_phases(Algorithm algorithm) {
  return has_waypoint(algorithm) || algorithm == Algorithm::o1turn ||
         algorithm == Algorithm::adaptive_xy_yx;
}

/// The algorithms of a shape.
bool fits(Shape shape, Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::dor:
      return is_grid(shape) || shape == Shape::flattened_butterfly;
    case Algorithm::yx:
    case Algorithm::o1turn:
    case Algorithm::adaptive_xy_yx:
    case Algorithm::romm:
      return shape == Shape::mesh || shape == Shape::cmesh;
    case Algorithm::valiant:
    case Algorithm::ugal:
      return is_grid(shape) || shape == Shape::flattened_butterfly || shape == Shape::dragonfly;
    case Algorithm::adaptive:
      return is_grid(shape);
    case Algorithm::nca:
      return shape == Shape::fat_tree || shape == Shape::switch_clusters || shape == Shape::tree;
    case Algorithm::dest_tag:
      return shape == Shape::fly;
    case Algorithm::min:
    case Algorithm::up_down:
      return shape != Shape::fly || algorithm == Algorithm::min;
  }
  return false;
}

int classes_of(const RouterGraph& graph, Algorithm algorithm, Rules rules) {
  const bool table = algorithm == Algorithm::min || algorithm == Algorithm::up_down;
  if (algorithm == Algorithm::adaptive) {  // of BookSim's torus VC 2 is for injection alone
    return graph.shape != Shape::torus ? 2 : rules == Rules::booksim ? 4 : 3;
  }
  if (graph.shape == Shape::dragonfly && algorithm != Algorithm::up_down) {
    return algorithm == Algorithm::min ? 2 : 3;  // groups that a route touches
  }
  return (has_two_phases(algorithm) ? 2 : 1) * (graph.shape == Shape::torus && !table ? 2 : 1);
}

VcMask lowest(int count) {
  return count >= 64 ? ~VcMask{0} : (VcMask{1} << static_cast<unsigned>(count)) - 1;
}

/// One of `count` parts of a range of VCs; the lower ones have the odd ones.
VcMask class_of(VcMask range, int which, int count) {
  const int vcs = std::popcount(range);
  const auto up_to = [&](int classes) { return lowest((vcs * classes + count - 1) / count); };
  return (up_to(which + 1) & ~up_to(which)) << static_cast<unsigned>(std::countr_zero(range));
}

VcMask half_of(VcMask range, unsigned which) {
  return class_of(range, static_cast<int>(which), 2);
}

/// A range of VCs without the `count` highest (half 0) or lowest.
VcMask without(VcMask range, int count, unsigned which) {
  const VcMask lowest_ones = lowest(count) << static_cast<unsigned>(std::countr_zero(range));
  return which == 0 ? range & (range >> static_cast<unsigned>(count)) : range & ~lowest_ones;
}

}  // namespace

Algorithm default_algorithm(Shape shape) {
  switch (shape) {
    case Shape::mesh:
    case Shape::torus:
    case Shape::cmesh:
    case Shape::flattened_butterfly:
      return Algorithm::dor;
    case Shape::fat_tree:
    case Shape::tree:
    case Shape::switch_clusters:
      return Algorithm::nca;
    case Shape::fly:
      return Algorithm::dest_tag;
    case Shape::dragonfly:
    case Shape::graph:
      return Algorithm::min;
  }
  return Algorithm::min;
}

Routing::Routing(const RouterGraph& graph, Algorithm algorithm, int vcs, Rules rules)
    : graph_(&graph), algorithm_(algorithm), rules_(rules), all_(lowest(vcs)) {
  low_ = follows_booksim() ? without(all_, vcs / 2, 0) : half_of(all_, 0);
  high_ = follows_booksim() ? without(all_, vcs / 2, 1) : half_of(all_, 1);
}

Routing::Routing(const RouterGraph& graph, int vcs, const std::vector<Candidate>& routes)
    : Routing(graph, Algorithm::min, vcs, Rules::ours) {
  routes_ = &routes;
}

Result<Routing> Routing::make(const RouterGraph& graph, Algorithm algorithm, int vcs, Rules rules) {
  if (!fits(graph.shape, algorithm)) {
    std::string of_shape;
    for (const Named<Algorithm>& entry : kNames<Algorithm>) {
      if (fits(graph.shape, entry.value)) {
        of_shape += (of_shape.empty() ? "" : ", ") + std::string(entry.name);
      }
    }
    return fail(Error(Mistake{"routing",
                              {},
                              std::string(name_of(algorithm)),
                              fmt::format("one of {}: those of {}", of_shape, graph.name)}));
  }
  if (const int classes = classes_of(graph, algorithm, rules); vcs < classes || vcs > kMostVcs) {
    return fail(
        Error(Mistake{"vcs",
                      {},
                      std::to_string(vcs),
                      fmt::format("{} to {}: routing {} on {} needs {} classes of virtual "
                                  "channels",
                                  classes, kMostVcs, name_of(algorithm), graph.name, classes)}));
  }
  Routing routing(graph, algorithm, vcs, rules);
  return routing.prepare().map([&] { return std::move(routing); });
}

VcMask Routing::ring_vcs(const RouteState& state, std::uint32_t router) const {
  if (!has_two_phases(algorithm_)) {
    return half(state.ring);
  }
  if (!follows_booksim()) {
    return half_of(half(state.ring), state.phase);
  }
  return router == eject_router(state)
             ? all_
             : without(half(state.ring), std::popcount(all_) / 2 / 2, state.phase);
}

Candidate Routing::mesh_hop(std::uint32_t router, std::uint32_t goal, bool highest_first) const {
  for (std::size_t i = 0; i < dimensions_; ++i) {
    const std::size_t d = highest_first ? dimensions_ - 1 - i : i;
    const std::int32_t ahead = coordinate(goal, d) - coordinate(router, d);
    if (ahead != 0) {
      const std::uint32_t express = express_channel(router, d, ahead);
      return {express != kNoChannel ? express : channel(router, 2 * d + (ahead > 0 ? 0 : 1)), all_};
    }
  }
  return {kNoChannel, 0};
}

/// Returns the express channel of a concentrated mesh along an edge in dimension d, where at least
/// half of it is ahead.
std::uint32_t Routing::express_channel(std::uint32_t router, std::size_t d,
                                       std::int32_t ahead) const {
  if (graph_->shape != Shape::cmesh || 2 * std::abs(ahead) < graph_->extents[d]) {
    return kNoChannel;
  }
  const std::size_t other = 1 - d;
  const std::int32_t at = coordinate(router, other);
  if (at == 0) {
    return channel(router, 2 * other + 1);
  }
  return at + 1 == graph_->extents[other] ? channel(router, 2 * other) : kNoChannel;
}

/// The class is chosen on entering a dimension and kept in it: the half of the packets that wrap on
/// the way up, and of those that do not on the way down. No channel of either ring of a half is
/// followed by itself, so neither can be held in a circle.
Candidate Routing::torus_hop(RouteState& state, std::uint32_t router, std::uint32_t goal,
                             std::uint32_t draw) const {
  for (std::size_t d = 0; d < dimensions_; ++d) {
    const std::int32_t from = coordinate(router, d);
    const std::int32_t to = coordinate(goal, d);
    if (from == to) {
      continue;
    }
    if (state.dimension != static_cast<std::int8_t>(d)) {
      const std::int32_t extent = graph_->extents[d];
      const std::int32_t ahead = (to - from + extent) % extent;
      const bool up = 2 * ahead == extent ? draw != 0 : 2 * ahead < extent;
      state.dimension = static_cast<std::int8_t>(d);
      state.up = up ? 1 : 0;
      state.ring = to < from ? 1 : 0;
    }
    return {channel(router, 2 * d + (state.up != 0 ? 0 : 1)), ring_vcs(state, router)};
  }
  return {kNoChannel, 0};
}

VcMask Routing::dragonfly_vcs(unsigned group) const {
  return follows_booksim()
             ? VcMask{1} << group
             : class_of(all_, static_cast<int>(group), classes_of(*graph_, algorithm_, rules_));
}

bool Routing::on_detour(const RouteState& state, std::uint32_t router) const {
  if ((algorithm_ != Algorithm::valiant && algorithm_ != Algorithm::ugal) || state.phase != 0) {
    return false;
  }
  if (follows_booksim() && graph_->shape == Shape::flattened_butterfly &&
      algorithm_ == Algorithm::valiant && router == eject_router(state)) {
    return false;
  }
  const auto a = static_cast<std::uint32_t>(graph_->extents[0]);
  return graph_->shape == Shape::dragonfly && !follows_booksim() ? state.via / a != router / a
                                                                 : state.via != router;
}

/// Moves on to the second phase where the first ends.
std::uint32_t Routing::goal(RouteState& state, std::uint32_t router) const {
  const bool by_waypoint = has_waypoint(algorithm_);
  if (by_waypoint && state.phase == 0 && router == state.via) {
    state.phase = 1;
    state.dimension = -1;
  }
  return by_waypoint && state.phase == 0 ? state.via : eject_router(state);
}

bool Routing::draws_at_start() const {
  return routes_ == nullptr && has_two_phases(algorithm_);
}

std::uint32_t Routing::draws(const RouteState& state, std::uint32_t router) const {
  if (algorithm_ == Algorithm::nca && graph_->shape == Shape::tree) {
    return static_cast<std::uint32_t>(nearer_.of(router, eject_router(state)).size());
  }
  if (algorithm_ == Algorithm::nca && graph_->shape == Shape::fat_tree) {
    return goes_down(state, router) ? 1U : static_cast<std::uint32_t>(graph_->extents[0]);
  }
  if (algorithm_ == Algorithm::nca) {
    return static_cast<std::uint32_t>(graph_->extents[1]);
  }
  if (graph_->shape != Shape::torus || algorithm_ == Algorithm::min ||
      algorithm_ == Algorithm::up_down) {
    return 1;
  }
  RouteState moved = state;
  const std::uint32_t to = goal(moved, router);
  for (std::size_t d = 0; d < dimensions_; ++d) {
    const std::int32_t distance = std::abs(coordinate(to, d) - coordinate(router, d));
    if (distance != 0) {
      const bool entering = moved.dimension != static_cast<std::int8_t>(d);
      return entering && 2 * distance == graph_->extents[d] ? 2 : 1;
    }
  }
  return 1;
}

Candidate Routing::single(RouteState& state, std::uint32_t router, std::uint32_t draw) const {
  if (graph_->shape == Shape::dragonfly && algorithm_ != Algorithm::up_down) {
    return dragonfly_hop(state, router);
  }
  const std::uint32_t to = goal(state, router);
  const bool two_phases = has_two_phases(algorithm_);
  switch (algorithm_) {
    case Algorithm::dor:
    case Algorithm::valiant:
    case Algorithm::ugal:
    case Algorithm::romm:
    case Algorithm::adaptive:
      if (graph_->shape == Shape::torus) {
        return torus_hop(state, router, to, draw);
      }
      if (graph_->shape == Shape::mesh || graph_->shape == Shape::cmesh) {
        const Candidate hop = mesh_hop(router, to, false);
        return {.port = hop.port, .vcs = two_phases ? phase_vcs(state, router) : all_};
      }
      for (std::size_t d = 0, port = 0; d < dimensions_; ++d) {
        if (coordinate(router, d) != coordinate(to, d)) {
          return {channel(router, port + static_cast<std::size_t>(coordinate(to, d))),
                  two_phases ? half(state.phase) : all_};
        }
        port += static_cast<std::size_t>(graph_->extents[d]);
      }
      return {kNoChannel, 0};
    case Algorithm::yx:
      return mesh_hop(router, to, true);
    case Algorithm::o1turn:
    case Algorithm::adaptive_xy_yx:
      return {mesh_hop(router, to, state.phase == 1).port, half(state.phase)};
    case Algorithm::nca:
      return tree_hop(state, router, draw);
    case Algorithm::dest_tag: {
      const auto k = static_cast<std::uint32_t>(graph_->extents[0]);
      const auto n = static_cast<std::uint32_t>(graph_->extents.size());
      const std::uint32_t stage = router / (static_cast<std::uint32_t>(graph_->routers) / n);
      std::uint32_t digits = state.target;
      for (std::uint32_t i = stage + 1; i < n; ++i) {
        digits /= k;
      }
      return {channel(router, digits % k), all_};
    }
    case Algorithm::min:
    case Algorithm::up_down: {
      const std::uint32_t port = table_.channel(state.phase, router, to);
      state.phase = table_.is_down(port) ? 1 : state.phase;
      return {port, all_};
    }
  }
  return {kNoChannel, 0};
}

void Routing::next(RouteState& state, std::uint32_t router, Random& random,
                   Candidates& into) const {
  into.count = 0;
  into.preferred = 1;
  if (routes_ != nullptr) {
    into.list[0] = (*routes_)[state.via++];
    into.count = 1;
    return;
  }
  if (is_there(state, router)) {
    into.add(port_to_node(state.target), vcs_to_node(state));
    return;
  }
  if (is_adaptive()) {
    adaptive(state, router, into);
    return;
  }
  const std::uint32_t routes = draws(state, router);
  const Candidate output = single(state, router, routes > 1 ? random.below(routes) : 0);
  if (has_escapes()) {
    escaping(state, router, output, into);
    return;
  }
  into.add(output.port, output.vcs);
}

RouteState Routing::start(std::uint32_t source, std::uint32_t target, std::uint32_t route,
                          Random& random) const {
  RouteState state;
  state.target = target;
  if (routes_ != nullptr) {
    state.via = route;
    return state;
  }
  const auto from = static_cast<std::uint32_t>(graph_->nodes[source].inject);
  const std::uint32_t to = eject_router(state);
  const bool ugal = algorithm_ == Algorithm::ugal;
  const auto& nodes = graph_->nodes;
  const bool by_node = follows_booksim() && graph_->shape == Shape::flattened_butterfly;
  if (algorithm_ == Algorithm::o1turn) {
    state.phase = from != to && random.below(2) == 0 ? 1 : 0;
  } else if (ugal && graph_->shape == Shape::dragonfly) {  // a node of all, for another group
    const auto a = static_cast<std::uint32_t>(graph_->extents[0]);
    const bool near = from / a == to / a;
    const std::uint32_t node =
        near ? source : random.below(static_cast<std::uint32_t>(nodes.size()));
    state.via = static_cast<std::uint32_t>(nodes[node].inject);
    state.via = follows_booksim() && state.via / a == from / a ? from : state.via;
    state.phase = follows_booksim() && near ? 2 : 0;
  } else if (ugal && graph_->shape == Shape::flattened_butterfly && from == to) {
    state.via = from;
  } else if (algorithm_ == Algorithm::romm ||
             (ugal && graph_->shape == Shape::flattened_butterfly)) {
    if (ugal) {  // one of its router's nodes, which changes nothing
      random.below(static_cast<std::uint32_t>(nodes.size()) /
                   static_cast<std::uint32_t>(graph_->routers));
    }
    std::int32_t weight = 1;
    for (std::size_t d = 0; d < dimensions_; ++d) {  // romm: between; ugal: where they differ
      const auto [low, high] = std::minmax({coordinate(from, d), coordinate(to, d)});
      const bool any = ugal && low != high;
      const auto span = static_cast<std::uint32_t>(any ? graph_->extents[d] : high - low + 1);
      const std::uint32_t drawn = ugal && low == high ? 0 : random.below(span);
      state.via +=
          static_cast<std::uint32_t>(((any ? 0 : low) + static_cast<std::int32_t>(drawn)) * weight);
      weight *= graph_->extents[d];
    }
  } else if (algorithm_ == Algorithm::valiant && by_node) {
    state.via = static_cast<std::uint32_t>(
        nodes[random.below(static_cast<std::uint32_t>(nodes.size()))].inject);
  } else if (algorithm_ == Algorithm::valiant || ugal) {
    state.via = random.below(static_cast<std::uint32_t>(graph_->routers));
  }
  return state;
}

}  // namespace orrery::flit
