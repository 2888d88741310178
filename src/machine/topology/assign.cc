// SPDX-License-Identifier: Apache-2.0
#include "machine/topology/assign.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "machine/topology/colouring.h"

namespace orrery::topology {
namespace {

/// A part of a flow before it has a route.
struct Part {
  std::uint32_t flow = 0;
  double share = 1;
  std::vector<std::int32_t> choice;  ///< by level (Router::climb)
};

class Assigner {
 public:
  Assigner(Router& router, std::span<const FlowEnds> flows, const std::vector<bool>& lost)
      : router_(router), flows_(flows), lost_(lost), load_(router.graph().links.size()) {}

  Result<Assigned> run() {
    switch (router_.routing()) {
      case Routing::greedy:
        greedy();
        break;
      case Routing::adaptive:
        adaptive();
        break;
      case Routing::source_rule:
        by_rule(false);
        break;
      case Routing::pair_split:
        by_rule(true);
        break;
      case Routing::colour:
        colour();
        break;
      default:
        one_by_one();
    }
    if (unreachable_ < flows_.size()) {
      const FlowEnds& flow = flows_[unreachable_];
      return fail("no way leads from " + name(flow.source) + " to " + name(flow.target) +
                  " with routing " + std::string(name_of(router_.routing())));
    }
    if (!std::ranges::is_sorted(result_.pieces, {}, &Piece::flow)) {  // laid one by one they are
      std::ranges::stable_sort(result_.pieces, {}, &Piece::flow);
    }
    return std::move(result_);
  }

 private:
  const Layout& tree() const { return router_.graph().layout; }
  const std::string& name(std::int32_t host) const {
    return router_.graph().vertices[static_cast<std::size_t>(host)].name;
  }
  bool is_local(std::size_t flow) const { return flows_[flow].source == flows_[flow].target; }
  std::int32_t choices(std::size_t level) const {
    return tree().up[level] * tree().parallel[level];
  }
  /// Number of the switch of a level above a host, of those of one plane.
  std::int32_t above(std::int32_t host, std::size_t level) const {
    for (std::size_t l = 0; l < level; ++l) {
      host /= tree().shape[l];
    }
    return host;
  }

  /// The hops since `first` are the route of a part of the flow.
  void add(std::size_t flow, double share, std::size_t first, bool found) {
    if (!found) {
      unreachable_ = std::min(unreachable_, flow);
    }
    result_.pieces.push_back({static_cast<std::uint32_t>(flow),
                              static_cast<std::uint32_t>(result_.hops.size() - first), share,
                              first});
  }

  void add_climb(const Part& part) {
    const FlowEnds& flow = flows_[part.flow];
    const std::size_t first = result_.hops.size();
    const bool found = flow.source == flow.target
                           ? router_.route(flow.source, flow.target, 0, result_.hops)
                           : router_.climb(flow.source, flow.target, part.choice, result_.hops);
    add(part.flow, part.share, first, found);
  }

  /// Returns, by flow, how many of those before it have its ends.
  std::vector<std::uint32_t> count_copies() const {
    const auto ends = [this](std::uint32_t f) {
      return std::pair(flows_[f].source, flows_[f].target);
    };
    std::vector<std::uint32_t> order(flows_.size());
    std::iota(order.begin(), order.end(), 0U);
    std::ranges::stable_sort(order, {}, ends);
    std::vector<std::uint32_t> copies(flows_.size());
    for (std::size_t i = 1; i < order.size(); ++i) {
      if (ends(order[i]) == ends(order[i - 1])) {
        copies[order[i]] = copies[order[i - 1]] + 1;
      }
    }
    return copies;
  }

  void one_by_one() {
    const std::vector<std::uint32_t> copies =
        router_.routing() == Routing::ecmp ? count_copies() : std::vector<std::uint32_t>();
    result_.pieces.reserve(flows_.size());
    for (std::size_t f = 0; f < flows_.size() && unreachable_ == SIZE_MAX; ++f) {
      const auto [source, target, bytes] = flows_[f];
      const std::uint64_t copy = copies.empty() ? 0 : copies[f];
      const auto key =
          mixed(static_cast<std::uint64_t>(source) << 32U | static_cast<std::uint64_t>(target)) +
          copy;
      const std::size_t first = result_.hops.size();
      add(f, 1, first, router_.route(source, target, key, result_.hops));
    }
  }

  double cost(const Hop& hop, const FlowEnds& flow) const {
    return load_[hop.link] + to_seconds(flow.bytes / hop.bandwidth);
  }
  void book(std::size_t first, const FlowEnds& flow) {
    for (std::size_t h = first; h < result_.hops.size(); ++h) {
      load_[result_.hops[h].link] = cost(result_.hops[h], flow);
    }
  }

  void greedy() {
    for (std::size_t f = 0; f < flows_.size(); ++f) {
      const FlowEnds& flow = flows_[f];
      const std::size_t first = result_.hops.size();
      bool found = true;
      if (is_local(f)) {
        found = router_.route(flow.source, flow.target, 0, result_.hops);
      } else {
        found = climb_best(flow);
      }
      book(first, flow);
      add(f, 1, first, found);
    }
  }

  /// Climbs the best of all ways up to where the two hosts meet.
  bool climb_best(const FlowEnds& flow) {
    std::size_t levels = 0;
    while (above(flow.source, levels) != above(flow.target, levels)) {
      ++levels;
    }
    std::vector<std::int32_t> choice(tree().shape.size());
    std::vector<Hop> route;
    std::vector<Hop> best;
    double least = std::numeric_limits<double>::infinity();
    for (;;) {
      route.clear();
      if (!router_.climb(flow.source, flow.target, choice, route)) {
        return false;
      }
      double worst = 0;
      const std::size_t ends = choices(0) == 1 && route.size() > 2 ? 1 : 0;  // of every route alike
      for (std::size_t h = ends; h < route.size() - ends; ++h) {
        worst = std::max(worst, cost(route[h], flow));
      }
      if (worst < least) {
        least = worst;
        best = route;
      }
      std::size_t level = 0;
      while (level < levels && ++choice[level] == choices(level)) {
        choice[level++] = 0;
      }
      if (level == levels) {
        break;
      }
    }
    result_.hops.insert(result_.hops.end(), best.begin(), best.end());
    return true;
  }

  /// Returns, of the links that come nearer to the flow's target, the cheapest.
  std::int32_t best_link(const std::vector<std::int32_t>& routes, const FlowEnds& flow) const {
    return *std::ranges::min_element(
        routes, {}, [&](std::int32_t link) { return cost(router_.hop(link), flow); });
  }

  void adaptive() {
    for (std::size_t f = 0; f < flows_.size(); ++f) {
      const FlowEnds& flow = flows_[f];
      const std::size_t first = result_.hops.size();
      std::int32_t here = flow.source;
      bool found = router_.distances(flow.target)[static_cast<std::size_t>(here)] >= 0;
      while (found && here != flow.target) {
        const std::int32_t best = best_link(router_.nearer(here, flow.target), flow);
        result_.hops.push_back(router_.hop(best));
        here = router_.graph().links[static_cast<std::size_t>(best)].target;
      }
      book(first, flow);
      add(f, 1, first, found);
    }
  }

  /// The flows of each source leaf, or of each pair of leaves, in turn over the uplinks.
  void by_rule(bool by_pair) {
    std::map<std::pair<std::int32_t, std::int32_t>, std::vector<std::uint32_t>> groups;
    for (std::uint32_t f = 0; f < flows_.size(); ++f) {
      const std::int32_t from = above(flows_[f].source, 1);
      const std::int32_t to = above(flows_[f].target, 1);
      if (from == to) {
        add_climb({f, 1, {0, 0}});
      } else {
        groups[{from, by_pair ? to : 0}].push_back(f);
      }
    }
    const std::int32_t uplinks = choices(1);
    for (const auto& [leaves, members] : groups) {
      const auto count = static_cast<std::int32_t>(members.size());
      const std::int32_t rest = count % uplinks;
      const std::int32_t cuts = rest == 0 ? 1 : uplinks / std::gcd(rest, uplinks);
      std::int32_t turn = 0;
      for (std::int32_t i = 0; i < count; ++i) {
        const std::int32_t pieces = i < count - rest ? 1 : cuts;
        for (std::int32_t piece = 0; piece < pieces; ++piece) {
          add_climb({members[static_cast<std::size_t>(i)], 1.0 / pieces, {0, turn++ % uplinks}});
        }
      }
    }
  }

  void colour() {
    std::map<Bytes, std::vector<Part>> by_size;
    for (std::uint32_t f = 0; f < flows_.size(); ++f) {
      by_size[flows_[f].bytes].push_back({f, 1, std::vector<std::int32_t>(tree().shape.size())});
    }
    for (auto& [bytes, parts] : by_size) {
      colour_level(std::move(parts), 0);
    }
  }

  /// Returns the routes on which no part meets a lost link between the level and the next.
  std::vector<std::int32_t> open_routes(std::vector<Part>& parts, std::size_t level) {
    std::vector<std::int32_t> open;
    std::vector<Hop> hops;
    for (std::int32_t route = 0; route < choices(level); ++route) {
      const bool is_open = lost_.empty() || std::ranges::all_of(parts, [&](Part& part) {
                             part.choice[level] = route;
                             hops.clear();
                             const FlowEnds& flow = flows_[part.flow];
                             return router_.climb(flow.source, flow.target, part.choice, hops) &&
                                    !lost_[hops[level].link] &&
                                    !lost_[hops[hops.size() - 1 - level].link];
                           });
      if (is_open) {
        open.push_back(route);
      }
    }
    return open;
  }

  /// Chooses for each part the route out of its switch of the level (level 0: its host).
  void colour_level(std::vector<Part> parts, std::size_t level) {
    std::vector<Part> going;
    std::vector<LeafPair> edges;
    for (Part& part : parts) {
      const FlowEnds& flow = flows_[part.flow];
      if (level == tree().shape.size() || above(flow.source, level) == above(flow.target, level)) {
        add_climb(part);
      } else {
        edges.push_back({above(flow.source, level), above(flow.target, level)});
        going.push_back(std::move(part));
      }
    }
    if (going.empty()) {
      return;
    }
    const std::vector<std::int32_t> open = open_routes(going, level);
    if (open.empty()) {
      return add(going.front().flow, 1, result_.hops.size(), false);
    }
    if (choices(level) == 1) {
      colour_level(std::move(going), level + 1);
      return;
    }
    for (std::vector<Part>& plane : spread(going, edges, level, open)) {
      colour_level(std::move(plane), level + 1);
    }
  }

  /// Returns the parts of each of the open routes, by an edge colouring: of D colours as many as
  /// the routes divide take whole parts, those of the r others are cut. The next level colours
  /// parts of one size: for it all are cut alike before.
  std::vector<std::vector<Part>> spread(std::vector<Part>& going, std::vector<LeafPair>& edges,
                                        std::size_t level, const std::vector<std::int32_t>& open) {
    const auto routes = static_cast<std::int32_t>(open.size());
    const std::int32_t switches = above(router_.graph().hosts - 1, level) + 1;
    const std::int32_t degree = largest_degree(edges, switches);
    const bool again = level + 1 < tree().shape.size() && choices(level + 1) > 1;
    if (again) {
      cut(going, edges, routes / std::gcd(degree, routes));
    }
    const std::int32_t whole = again ? largest_degree(edges, switches) : degree / routes * routes;
    const std::int32_t cuts = routes / std::gcd(degree, routes);
    const std::vector<std::int32_t> colours = edge_colours(edges, switches);
    std::vector<std::vector<Part>> planes(open.size());
    for (std::size_t p = 0; p < going.size(); ++p) {
      const bool stays = colours[p] < whole;
      going[p].share /= stays ? 1 : cuts;
      for (std::int32_t piece = 0; piece < (stays ? 1 : cuts); ++piece) {
        const std::int32_t turn = stays ? colours[p] : (colours[p] - whole) * cuts + piece;
        const auto plane = static_cast<std::size_t>(turn % routes);
        planes[plane].push_back(going[p]);
        planes[plane].back().choice[level] = open[plane];
      }
    }
    return planes;
  }

  static void cut(std::vector<Part>& parts, std::vector<LeafPair>& edges, std::int32_t cuts) {
    std::vector<Part> pieces;
    std::vector<LeafPair> piece_edges;
    for (std::size_t p = 0; p < parts.size(); ++p) {
      parts[p].share /= cuts;
      pieces.insert(pieces.end(), static_cast<std::size_t>(cuts), parts[p]);
      piece_edges.insert(piece_edges.end(), static_cast<std::size_t>(cuts), edges[p]);
    }
    parts = std::move(pieces);
    edges = std::move(piece_edges);
  }

  Router& router_;
  std::span<const FlowEnds> flows_;
  const std::vector<bool>& lost_;
  std::vector<double> load_;  ///< seconds, by link
  Assigned result_;
  std::size_t unreachable_ = SIZE_MAX;
};

}  // namespace

Result<Assigned> assign(Router& router, std::span<const FlowEnds> flows,
                        const std::vector<bool>& lost) {
  return Assigner(router, flows, lost).run();
}

std::vector<std::vector<Hop>> as_one(const Assigned& assigned, std::size_t flows) {
  std::vector<std::vector<Hop>> routes(flows);
  std::map<LinkId, std::pair<std::size_t, double>> on;  // of this flow: place in its route, share
  for (std::size_t p = 0; p < assigned.pieces.size(); ++p) {
    const Piece& piece = assigned.pieces[p];
    std::vector<Hop>& route = routes[piece.flow];
    const bool first = p == 0 || assigned.pieces[p - 1].flow != piece.flow;
    if (first) {
      on.clear();
    }
    for (const Hop& hop : assigned.route(piece)) {
      const auto [known, fresh] = on.try_emplace(hop.link, route.size(), 0.0);
      if (fresh) {
        route.push_back({hop.link, hop.bandwidth, Time(0)});
      }
      auto& [place, share] = known->second;
      share += piece.share;
      route[place].bandwidth = Bandwidth(hop.bandwidth.value() / share);
      route.front().latency += first ? hop.latency : Time(0);
    }
  }
  return routes;
}

}  // namespace orrery::topology
