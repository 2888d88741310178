// SPDX-License-Identifier: Apache-2.0
#include "machine/topology/assign.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "machine/topology/colouring.h"

namespace orrery::topology {
namespace {

/// A part of a flow before it has a way.
struct Part {
  std::uint32_t flow = 0;
  double share = 1;
  std::vector<std::int32_t> choice;  ///< by level (Router::climb)
};

class Assigner {
 public:
  Assigner(Router& router, std::span<const FlowEnds> flows)
      : router_(router), flows_(flows), load_(router.graph().links.size()) {}

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
    std::ranges::stable_sort(result_.pieces, {}, &Piece::flow);
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

  /// The hops since `first` are the way of a part of the flow.
  void add(std::size_t flow, double share, std::size_t first, bool found) {
    if (!found) {
      unreachable_ = std::min(unreachable_, flow);
    }
    result_.pieces.push_back({static_cast<std::uint32_t>(flow), share, first,
                              static_cast<std::uint32_t>(result_.hops.size() - first)});
  }

  void add_climb(const Part& part) {
    const FlowEnds& flow = flows_[part.flow];
    const std::size_t first = result_.hops.size();
    const bool found = flow.source == flow.target
                           ? router_.route(flow.source, flow.target, 0, result_.hops)
                           : router_.climb(flow.source, flow.target, part.choice, result_.hops);
    add(part.flow, part.share, first, found);
  }

  void one_by_one() {
    std::map<std::pair<std::int32_t, std::int32_t>, std::uint64_t> seen;
    const bool hashed = router_.routing() == Routing::ecmp;
    for (std::size_t f = 0; f < flows_.size(); ++f) {
      const auto [source, target, bytes] = flows_[f];
      const std::uint64_t copy = hashed ? seen[{source, target}]++ : 0;
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

  /// Of all ways up to where the two hosts meet.
  bool climb_best(const FlowEnds& flow) {
    std::size_t levels = 0;
    while (above(flow.source, levels) != above(flow.target, levels)) {
      ++levels;
    }
    std::vector<std::int32_t> choice(tree().shape.size());
    std::vector<Hop> way;
    std::vector<Hop> best;
    double least = std::numeric_limits<double>::infinity();
    for (;;) {
      way.clear();
      if (!router_.climb(flow.source, flow.target, choice, way)) {
        return false;
      }
      double worst = 0;
      const std::size_t ends = choices(0) == 1 && way.size() > 2 ? 1 : 0;  // of every way alike
      for (std::size_t h = ends; h < way.size() - ends; ++h) {
        worst = std::max(worst, cost(way[h], flow));
      }
      if (worst < least) {
        least = worst;
        best = way;
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

  /// Of the links that come nearer to the flow's target the cheapest.
  std::int32_t best_link(std::int32_t here, const FlowEnds& flow,
                         const std::vector<std::int16_t>& far) {
    const LinkGraph& graph = router_.graph();
    std::int32_t best = -1;
    for (const std::int32_t link : router_.adjacency().out(here)) {
      const std::int32_t to = graph.links[static_cast<std::size_t>(link)].target;
      const bool nearer =
          far[static_cast<std::size_t>(to)] == far[static_cast<std::size_t>(here)] - 1 &&
          (to == flow.target || to >= graph.hosts || graph.hosts_forward);
      if (nearer && (best < 0 || cost(router_.hop(link), flow) < cost(router_.hop(best), flow))) {
        best = link;
      }
    }
    return best;
  }

  void adaptive() {
    for (std::size_t f = 0; f < flows_.size(); ++f) {
      const FlowEnds& flow = flows_[f];
      const std::size_t first = result_.hops.size();
      const std::vector<std::int16_t>& far = router_.distances(flow.target);
      std::int32_t here = flow.source;
      bool found = far[static_cast<std::size_t>(here)] >= 0;
      while (found && here != flow.target) {
        const std::int32_t best = best_link(here, flow, far);
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

  /// Chooses for each part the way out of its switch of the level (level 0: its host).
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
    const std::int32_t ways = choices(level);
    if (ways == 1) {
      colour_level(std::move(going), level + 1);
      return;
    }
    const std::int32_t switches = above(router_.graph().hosts - 1, level) + 1;
    const std::int32_t degree = largest_degree(edges, switches);
    const std::int32_t cuts = ways / std::gcd(degree, ways);
    std::vector<Part> pieces;
    std::vector<LeafPair> piece_edges;
    for (std::size_t p = 0; p < going.size(); ++p) {
      going[p].share /= cuts;
      pieces.insert(pieces.end(), static_cast<std::size_t>(cuts), going[p]);
      piece_edges.insert(piece_edges.end(), static_cast<std::size_t>(cuts), edges[p]);
    }
    const std::vector<std::int32_t> colours = edge_colours(piece_edges, switches);
    std::vector<std::vector<Part>> planes(static_cast<std::size_t>(ways));
    for (std::size_t p = 0; p < pieces.size(); ++p) {
      const std::int32_t way = colours[p] % ways;
      pieces[p].choice[level] = way;
      planes[static_cast<std::size_t>(way)].push_back(std::move(pieces[p]));
    }
    for (std::vector<Part>& plane : planes) {
      colour_level(std::move(plane), level + 1);
    }
  }

  Router& router_;
  std::span<const FlowEnds> flows_;
  std::vector<double> load_;  ///< seconds, by link
  Assigned result_;
  std::size_t unreachable_ = SIZE_MAX;
};

}  // namespace

Result<Assigned> assign(Router& router, std::span<const FlowEnds> flows) {
  return Assigner(router, flows).run();
}

std::vector<Time> link_times(const Assigned& assigned, std::span<const FlowEnds> flows,
                             std::size_t links) {
  std::vector<double> seconds(links);
  for (const Piece& piece : assigned.pieces) {
    const double bytes = piece.share * static_cast<double>(flows[piece.flow].bytes.value());
    for (const Hop& hop : assigned.way(piece)) {
      seconds[hop.link] += bytes / hop.bandwidth.value();
    }
  }
  std::vector<Time> times(links);
  std::ranges::transform(seconds, times.begin(), from_seconds);
  return times;
}

}  // namespace orrery::topology
