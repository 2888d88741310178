// SPDX-License-Identifier: Apache-2.0
#include "machine/network/flit/routing.h"

#include <fmt/format.h>

#include <algorithm>

namespace orrery::flit {
namespace {

constexpr std::int32_t kMostTableRouters = 4096;  // of which two tables take 134 MB

}  // namespace

Routing::Routing(const RouterGraph& graph, const RoutingTraits& traits)
    : graph_(&graph),
      traits_(traits),
      vcs_(traits),
      ports_(traits.is_stated ? RouterPorts() : RouterPorts(graph)) {}

Routing::Routing(const RouterGraph& graph, int vcs, const std::vector<Candidate>& routes)
    : Routing(graph, {.shape = graph.shape, .vcs = vcs, .is_stated = true}) {
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
  const RoutingTraits traits{graph.shape, algorithm, rules, vcs};
  if (const int classes = traits.vc_classes(); vcs < classes || vcs > kMostVcs) {
    return fail(
        Error(Mistake{"vcs",
                      {},
                      std::to_string(vcs),
                      fmt::format("{} to {}: routing {} on {} needs {} classes of virtual "
                                  "channels",
                                  classes, kMostVcs, name_of(algorithm), graph.name, classes)}));
  }
  Routing routing(graph, traits);
  return routing.make_tables().map([&] { return std::move(routing); });
}

/// Makes what finds hops where no coordinates do.
Result<void> Routing::make_tables() {
  const bool climbs = traits_.algorithm == Algorithm::nca;
  const bool lists = climbs && graph_->shape == Shape::tree;
  if ((traits_.has_table() || lists) && graph_->routers > kMostTableRouters) {
    return fail(fmt::format("routing {} keeps a table for {} routers at most, found {}",
                            name_of(traits_.algorithm), kMostTableRouters, graph_->routers));
  }
  if (climbs) {
    trees_.emplace(*graph_);
  }
  if (traits_.has_table()) {
    table_ = traits_.algorithm == Algorithm::min ? HopTable::shortest(*graph_)
                                                 : HopTable::up_down(*graph_);
    if (const auto cut = table_.cut_off(*graph_)) {
      return fail(fmt::format("routing {}: no way from router {} to router {}",
                              name_of(traits_.algorithm), graph_->router_name(cut->first),
                              graph_->router_name(cut->second)));
    }
  }
  return {};
}

bool Routing::on_detour(const RouteState& state, std::uint32_t router) const {
  if ((traits_.algorithm != Algorithm::valiant && traits_.algorithm != Algorithm::ugal) ||
      state.phase != 0) {
    return false;
  }
  if (traits_.follows_booksim() && graph_->shape == Shape::flattened_butterfly &&
      traits_.algorithm == Algorithm::valiant && router == eject_router(state)) {
    return false;
  }
  const auto a = static_cast<std::uint32_t>(extent(0));
  return graph_->shape == Shape::dragonfly && !traits_.follows_booksim()
             ? state.via / a != router / a
             : state.via != router;
}

/// Moves on to the second phase where the first ends.
std::uint32_t Routing::goal(RouteState& state, std::uint32_t router) const {
  const bool by_waypoint = traits_.has_waypoint();
  if (by_waypoint && state.phase == 0 && router == state.via) {
    state.phase = 1;
    state.dimension = -1;
  }
  return by_waypoint && state.phase == 0 ? state.via : eject_router(state);
}

void Routing::next(RouteState& state, std::uint32_t router, Random& random,
                   Candidates& into) const {
  into.count = 0;
  into.preferred = 1;
  if (traits_.is_stated) {
    into.list[0] = (*routes_)[state.via++];
    into.count = 1;
    return;
  }
  if (is_there(state, router)) {
    into.add(static_cast<std::uint32_t>(graph_->channels.size()) + state.target,
             vcs_.to_node(state.phase));
    return;
  }
  if (traits_.is_adaptive()) {
    adaptive(state, router, into);
    return;
  }
  const std::uint32_t routes = draws(state, router);
  const Candidate output = single(state, router, routes > 1 ? random.below(routes) : 0);
  if (traits_.has_escapes()) {
    escaping(state, router, output, into);
    return;
  }
  into.add(output.port, output.vcs);
}

RouteState Routing::start(std::uint32_t source, std::uint32_t target, std::uint32_t route,
                          Random& random) const {
  RouteState state;
  state.target = target;
  if (traits_.is_stated) {
    state.via = route;
    return state;
  }
  const auto from = static_cast<std::uint32_t>(graph_->nodes[source].inject);
  const std::uint32_t to = eject_router(state);
  if (traits_.algorithm == Algorithm::o1turn) {
    state.phase = from != to && random.below(2) == 0 ? 1 : 0;
  } else if (traits_.has_waypoint()) {
    state.via = draw_via(source, to, random);
  }
  if (traits_.algorithm == Algorithm::ugal && traits_.follows_booksim() &&
      graph_->shape == Shape::dragonfly) {
    const auto a = static_cast<std::uint32_t>(extent(0));
    state.phase = from / a == to / a ? 2 : 0;
  }
  return state;
}

/// Draws the router that a packet goes to first.
std::uint32_t Routing::draw_via(std::uint32_t source, std::uint32_t to, Random& random) const {
  const auto& nodes = graph_->nodes;
  const auto from = static_cast<std::uint32_t>(nodes[source].inject);
  const auto count = static_cast<std::uint32_t>(nodes.size());
  const auto routers = static_cast<std::uint32_t>(graph_->routers);
  const bool ugal = traits_.algorithm == Algorithm::ugal;
  const bool butterfly = graph_->shape == Shape::flattened_butterfly;
  if (ugal && graph_->shape == Shape::dragonfly) {  // a node of all, for another group
    const auto a = static_cast<std::uint32_t>(extent(0));
    const std::uint32_t node = from / a == to / a ? source : random.below(count);
    const auto via = static_cast<std::uint32_t>(nodes[node].inject);
    return traits_.follows_booksim() && via / a == from / a ? from : via;
  }
  if (ugal && butterfly && from == to) {
    return from;
  }
  if (ugal && butterfly) {
    random.below(count / routers);  // one of its router's nodes, which changes nothing
    return draw_between(from, to, random);
  }
  if (traits_.algorithm == Algorithm::romm) {
    return draw_between(from, to, random);
  }
  return traits_.follows_booksim() && butterfly
             ? static_cast<std::uint32_t>(nodes[random.below(count)].inject)
             : random.below(routers);
}

/// Draws a place of each dimension: of romm between two routers, of ugal any where they differ.
std::uint32_t Routing::draw_between(std::uint32_t from, std::uint32_t to, Random& random) const {
  const bool ugal = traits_.algorithm == Algorithm::ugal;
  std::uint32_t via = 0;
  std::int32_t weight = 1;
  for (std::size_t d = 0; d < ports_.dimensions(); ++d) {
    const auto [low, high] = std::minmax({ports_.coordinate(from, d), ports_.coordinate(to, d)});
    const bool any = ugal && low != high;
    const auto span = static_cast<std::uint32_t>(any ? extent(d) : high - low + 1);
    const std::uint32_t drawn = ugal && low == high ? 0 : random.below(span);
    via +=
        static_cast<std::uint32_t>(((any ? 0 : low) + static_cast<std::int32_t>(drawn)) * weight);
    weight *= extent(d);
  }
  return via;
}

void Routing::enter(RouteState& state, std::uint32_t vc) const {
  if (!traits_.has_escapes()) {
    state.phase = vc < static_cast<std::uint32_t>(traits_.vcs / 2) ? 0 : 1;
  } else {
    const bool escapes = vc < (graph_->shape == Shape::torus ? 2U : 1U);
    state.phase = escapes ? 1 : 0;
    state.dimension = escapes ? state.dimension : std::int8_t{-1};
  }
}

}  // namespace orrery::flit
