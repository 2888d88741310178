// SPDX-License-Identifier: Apache-2.0
/// Diameter and bisection of a network.
#include <algorithm>
#include <limits>
#include <queue>
#include <span>
#include <utility>

#include "machine/topology/link_graph.h"

namespace orrery::topology {
namespace {

/// Dinic's maximal flow between two sets of hosts, each joined to a vertex by links without limit.
class MaximalFlow {
 public:
  MaximalFlow(const LinkGraph& graph, const std::vector<bool>& in_first) {
    first_.assign(graph.vertices.size() + 2, -1);
    const auto source = static_cast<std::int32_t>(graph.vertices.size());
    for (const GraphLink& link : graph.links) {
      if (link.source >= 0) {
        add(link.source, link.target, link.bandwidth.value());
      }
    }
    for (std::int32_t h = 0; h < graph.hosts; ++h) {
      if (in_first[static_cast<std::size_t>(h)]) {
        add(source, h, std::numeric_limits<double>::infinity());
      } else {
        add(h, source + 1, std::numeric_limits<double>::infinity());
      }
    }
    source_ = source;
  }

  double solve() {
    double flow = 0;
    while (find_levels()) {
      next_ = first_;
      double pushed = 0;
      while ((pushed = push(source_, std::numeric_limits<double>::infinity())) > 0) {
        flow += pushed;
      }
    }
    return flow;
  }

 private:
  struct Edge {
    std::int32_t to = 0;
    std::int32_t next = -1;
    double room = 0;
  };

  void add(std::int32_t from, std::int32_t to, double capacity) {
    edges_.push_back({to, at(first_, from), capacity});
    at(first_, from) = static_cast<std::int32_t>(edges_.size()) - 1;
    edges_.push_back({from, at(first_, to), 0});
    at(first_, to) = static_cast<std::int32_t>(edges_.size()) - 1;
  }
  static std::int32_t& at(std::vector<std::int32_t>& of, std::int32_t index) {
    return of[static_cast<std::size_t>(index)];
  }
  Edge& edge(std::int32_t index) { return edges_[static_cast<std::size_t>(index)]; }

  bool find_levels() {
    level_.assign(first_.size(), -1);
    std::queue<std::int32_t> open;
    open.push(source_);
    at(level_, source_) = 0;
    while (!open.empty()) {
      const std::int32_t vertex = open.front();
      open.pop();
      for (std::int32_t e = at(first_, vertex); e >= 0; e = edge(e).next) {
        if (edge(e).room > kNothing && at(level_, edge(e).to) < 0) {
          at(level_, edge(e).to) = at(level_, vertex) + 1;
          open.push(edge(e).to);
        }
      }
    }
    return at(level_, source_ + 1) >= 0;
  }

  /// Routes of a level graph are as long as the network is wide: recursion is no deeper.
  double push(std::int32_t vertex, double amount) {
    if (vertex == source_ + 1) {
      return amount;
    }
    for (std::int32_t& e = at(next_, vertex); e >= 0; e = edge(e).next) {
      if (edge(e).room > kNothing && at(level_, edge(e).to) == at(level_, vertex) + 1) {
        const double pushed = push(edge(e).to, std::min(amount, edge(e).room));
        if (pushed > 0) {
          edge(e).room -= pushed;
          edge(e ^ 1).room += pushed;
          return pushed;
        }
      }
    }
    return 0;
  }

  static constexpr double kNothing = 1e-3;  ///< bytes per second
  std::vector<Edge> edges_;
  std::vector<std::int32_t> first_;
  std::vector<std::int32_t> next_;
  std::vector<std::int32_t> level_;
  std::int32_t source_ = 0;
};

struct Reach {
  std::int32_t links = -1;
  Time latency{0};
};

/// One link on from a vertex; `outer` gets what is new.
void reach_on(const LinkGraph& graph, std::span<const std::int32_t> out, const Reach here,
              std::vector<Reach>& reach, std::vector<std::int32_t>& outer) {
  for (const std::int32_t link : out) {
    const GraphLink& over = graph.links[static_cast<std::size_t>(link)];
    Reach& there = reach[static_cast<std::size_t>(over.target)];
    const Time latency = here.latency + over.latency;
    if (there.links < 0) {
      there = {here.links + 1, latency};
      outer.push_back(over.target);
    } else if (there.links == here.links + 1) {
      there.latency = std::min(there.latency, latency);
    }
  }
}

/// Returns the way from a host to every vertex over the fewest links, and of those the one of least
/// latency.
std::vector<Reach> reach_of(const LinkGraph& graph, const Adjacency& adjacency, std::int32_t from) {
  std::vector<Reach> reach(graph.vertices.size());
  std::vector<std::int32_t> ring{from};
  reach[static_cast<std::size_t>(from)].links = 0;
  while (!ring.empty()) {
    std::vector<std::int32_t> outer;
    for (const std::int32_t vertex : ring) {
      if (vertex == from || vertex >= graph.hosts || graph.hosts_forward) {
        reach_on(graph, adjacency.out(vertex), reach[static_cast<std::size_t>(vertex)], reach,
                 outer);
      }
    }
    ring = std::move(outer);
  }
  return reach;
}

/// Measures the routes of a file that states routes over links without ends.
void measure_routes(const LinkGraph& graph, GraphFigures& result) {
  double sum = 0;
  for (const auto& [ends, links] : graph.routes) {
    Time latency{0};
    for (const std::int32_t link : links) {
      latency += graph.links[static_cast<std::size_t>(link)].latency;
    }
    const auto length = static_cast<std::int32_t>(links.size());
    sum += length;
    result.diameter = std::max(result.diameter, length);
    result.farthest = std::max(result.farthest, latency);
  }
  const auto routes = static_cast<double>(graph.routes.size());
  result.mean_distance = sum / routes;
  result.connected = routes >= static_cast<double>(graph.hosts) * (graph.hosts - 1.0);
}

/// Hosts from which distances are measured, and for how many each stands.
struct Viewpoints {
  std::vector<std::int32_t> from;
  std::vector<double> copies;
};

/// Every host of a torus and of a flattened butterfly sees the same; elsewhere hosts with one and
/// the same cable to one switch are as far from everything else.
Viewpoints viewpoints_of(const LinkGraph& graph, const Adjacency& adjacency) {
  const Layout::Family family = graph.layout.family;
  if (graph.hosts > 0 && (family == Layout::Family::torus || family == Layout::Family::butterfly)) {
    return {.from = {0}, .copies = {static_cast<double>(graph.hosts)}};
  }
  Viewpoints views;
  auto& [from, copies] = views;
  std::vector<std::pair<std::pair<std::int32_t, Time>, std::size_t>> place;
  for (std::int32_t h = 0; h < graph.hosts; ++h) {
    const auto out = adjacency.out(h);
    if (out.size() == 1 && !graph.hosts_forward) {
      const GraphLink& link = graph.links[static_cast<std::size_t>(out.front())];
      const std::pair key{link.target, link.latency};
      if (!place.empty() && place.back().first == key) {
        copies[place.back().second] += 1;
        continue;
      }
      place.emplace_back(key, from.size());
    }
    from.push_back(h);
    copies.push_back(1);
  }
  return views;
}

void measure_distances(const LinkGraph& graph, const Adjacency& adjacency, GraphFigures& result) {
  double sum = 0;
  double pairs = 0;
  const auto [from, copies] = viewpoints_of(graph, adjacency);
  for (std::size_t i = 0; i < from.size(); ++i) {
    const std::vector<Reach> reach = reach_of(graph, adjacency, from[i]);
    for (std::int32_t h = 0; h < graph.hosts; ++h) {
      const Reach& there = reach[static_cast<std::size_t>(h)];
      if (h == from[i]) {
        continue;
      }
      result.connected = result.connected && there.links > 0;
      if (there.links <= 0) {
        continue;
      }
      pairs += copies[i];
      sum += copies[i] * there.links;
      result.diameter = std::max(result.diameter, there.links);
      result.farthest = std::max(result.farthest, there.latency);
    }
  }
  result.mean_distance = pairs > 0 ? sum / pairs : 0;
}

void measure_bisection(const LinkGraph& graph, const std::vector<bool>& in_first,
                       GraphFigures& result) {
  const double cut = MaximalFlow(graph, in_first).solve();
  result.bisection = std::min(result.bisection, Bandwidth(cut));
}

void measure_bisections(const LinkGraph& graph, GraphFigures& result) {
  result.bisection = Bandwidth(std::numeric_limits<double>::max());
  std::vector<bool> in_first(static_cast<std::size_t>(graph.hosts));
  for (std::size_t h = 0; h < in_first.size(); ++h) {
    in_first[h] = h < (in_first.size() + 1) / 2;
  }
  measure_bisection(graph, in_first, result);
  const Layout::Family family = graph.layout.family;
  if (family != Layout::Family::mesh && family != Layout::Family::torus &&
      family != Layout::Family::butterfly) {
    return;
  }
  std::int32_t stride = std::max(graph.layout.concentration, 1);
  for (const std::int32_t extent : graph.layout.shape) {
    if (extent % 2 == 0) {
      for (std::size_t h = 0; h < in_first.size(); ++h) {
        in_first[h] = static_cast<std::int32_t>(h) / stride % extent < extent / 2;
      }
      measure_bisection(graph, in_first, result);
    }
    stride *= extent;
  }
}

}  // namespace

Adjacency::Adjacency(const LinkGraph& graph)
    : first_(graph.vertices.size() + 1), order_(graph.links.size()) {
  for (const GraphLink& link : graph.links) {
    if (link.source >= 0) {
      ++first_[static_cast<std::size_t>(link.source) + 1];
    }
  }
  for (std::size_t v = 1; v < first_.size(); ++v) {
    first_[v] += first_[v - 1];
  }
  std::vector<std::size_t> at(first_.begin(), first_.end() - 1);
  for (std::size_t l = 0; l < graph.links.size(); ++l) {
    if (graph.links[l].source < 0) {
      continue;
    }
    order_[at[static_cast<std::size_t>(graph.links[l].source)]++] = static_cast<std::int32_t>(l);
  }
}

GraphFigures figures(const LinkGraph& graph) {
  GraphFigures result;
  result.hosts = graph.hosts;
  result.switches = static_cast<std::int32_t>(graph.vertices.size()) - graph.hosts;
  const Adjacency adjacency(graph);
  std::int64_t paired = 0;
  for (const GraphLink& link : graph.links) {
    if (link.source < 0) {
      continue;
    }
    const auto back = adjacency.out(link.target);
    paired += std::ranges::any_of(back, [&](std::int32_t other) {
      return graph.links[static_cast<std::size_t>(other)].target == link.source;
    });
  }
  const auto links = static_cast<std::int64_t>(graph.links.size());
  result.cables = links - paired + paired / 2;
  if (!graph.routes.empty() && paired == 0) {
    measure_routes(graph, result);
    return result;
  }
  measure_distances(graph, adjacency, result);
  for (std::int32_t h = 0; h < (graph.hosts + 1) / 2; ++h) {
    for (const std::int32_t link : adjacency.out(h)) {
      result.injection = result.injection + graph.links[static_cast<std::size_t>(link)].bandwidth;
    }
  }
  if (graph.hosts > 1) {
    measure_bisections(graph, result);
  }
  return result;
}

}  // namespace orrery::topology
