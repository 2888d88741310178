// SPDX-License-Identifier: Apache-2.0
#include "machine/topology/assign.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <limits>
#include <set>

#include "machine/topology/colouring.h"
#include "machine/topology/makers.h"

namespace orrery::topology {
namespace {

constexpr Bytes kSize{1 << 20};

/// Returns how long each link takes for all pieces that it carries.
std::vector<Time> link_times(const Assigned& assigned, const std::vector<FlowEnds>& flows,
                             std::size_t links) {
  std::vector<double> seconds(links);
  for (const Piece& piece : assigned.pieces) {
    const double bytes = piece.share * static_cast<double>(flows[piece.flow].bytes.value());
    for (const Hop& hop : assigned.route(piece)) {
      seconds[hop.link] += bytes / hop.bandwidth.value();
    }
  }
  std::vector<Time> times(links);
  std::ranges::transform(seconds, times.begin(), from_seconds);
  return times;
}

/// Returns the most pieces' worth of flows on one link between leaves and spines.
double busiest(const LinkGraph& graph, const std::vector<FlowEnds>& flows, Routing routing,
               std::uint64_t seed = 0) {
  Router router(graph, routing, seed);
  const auto assigned = assign(router, flows);
  EXPECT_TRUE(assigned);
  const std::vector<Time> times = link_times(*assigned, flows, graph.links.size());
  double most = 0;
  for (std::size_t l = 0; l < times.size(); ++l) {
    const GraphLink& link = graph.links[l];
    if (link.source >= graph.hosts && link.target >= graph.hosts) {
      most = std::max(most, to_seconds(times[l]) / to_seconds(kSize / link.bandwidth));
    }
  }
  return most;
}

std::int32_t degree(const std::vector<FlowEnds>& flows, std::int32_t hosts_per_leaf,
                    std::int32_t leaves) {
  std::vector<LeafPair> edges;
  for (const FlowEnds& flow : flows) {
    if (flow.source / hosts_per_leaf != flow.target / hosts_per_leaf) {
      edges.push_back({flow.source / hosts_per_leaf, flow.target / hosts_per_leaf});
    }
  }
  return largest_degree(edges, leaves);
}

LinkGraph leaf_spine(int leaves, int spines, int hosts) {
  return *parse_topology("leaf_spine:leaves=" + std::to_string(leaves) + ",spines=" +
                             std::to_string(spines) + ",hosts=" + std::to_string(hosts),
                         "test");
}

RC_GTEST_PROP(EdgeColours, NoTwoEdgesOfALeafSideShareAColour, ()) {
  const auto leaves = *rc::gen::inRange(1, 8);
  std::vector<LeafPair> edges;
  const int count = *rc::gen::inRange(0, 60);
  for (int e = 0; e < count; ++e) {
    edges.push_back({*rc::gen::inRange(0, leaves), *rc::gen::inRange(0, leaves)});
  }
  const std::vector<std::int32_t> colours = edge_colours(edges, leaves);
  std::set<std::pair<std::int32_t, std::int32_t>> sources;
  std::set<std::pair<std::int32_t, std::int32_t>> targets;
  for (std::size_t e = 0; e < edges.size(); ++e) {
    RC_ASSERT(colours[e] >= 0 && colours[e] < largest_degree(edges, leaves));
    RC_ASSERT(sources.emplace(edges[e].source, colours[e]).second);
    RC_ASSERT(targets.emplace(edges[e].target, colours[e]).second);
  }
}

TEST(Colour, LoadIsThatOfIdealSprayingForEverySmallInstance) {
  // All matrices of 0 to 2 flows between 2 leaves and all of 0 or 1 between 3; 1 to 3 spines. The
  // load of spraying is degree / spines, and no route of single paths has less.
  int instances = 0;
  for (const int leaves : {2, 3}) {
    const int pairs = leaves * (leaves - 1);
    const int most = leaves == 2 ? 3 : 1;
    const int codes = leaves == 2 ? 16 : 64;
    for (int spines = 1; spines <= 3; ++spines) {
      const LinkGraph graph = leaf_spine(leaves, spines, 3);
      for (int code = 1; code < codes; ++code) {
        std::vector<FlowEnds> flows;
        int rest = code;
        for (int p = 0; p < pairs; ++p) {
          const int from = p / (leaves - 1);
          const int to = (from + 1 + p % (leaves - 1)) % leaves;
          for (int i = 0; i < rest % (most + 1); ++i) {
            flows.push_back({from * 3 + i % 3, to * 3 + i % 3, kSize});
          }
          rest /= most + 1;
        }
        const double ideal = static_cast<double>(degree(flows, 3, leaves)) / spines;
        EXPECT_NEAR(busiest(graph, flows, Routing::colour), ideal, 1e-7);
        EXPECT_NEAR(busiest(graph, flows, Routing::pair_split), ideal, 1e-7);
        EXPECT_NEAR(busiest(graph, flows, Routing::spray), ideal, 1e-7);
        for (const Routing routing :
             {Routing::ecmp, Routing::greedy, Routing::source_rule, Routing::adaptive}) {
          EXPECT_GE(busiest(graph, flows, routing), ideal - 1e-7);
        }
        ++instances;
      }
    }
  }
  EXPECT_EQ(instances, 3 * (15 + 63));
}

/// Returns the least load of the busiest uplink or downlink, of all ways to put every flow on one
/// of the spines whole.
int least_whole_load(const std::vector<LeafPair>& edges, int leaves, int spines) {
  int least = std::numeric_limits<int>::max();
  int codes = 1;
  for (std::size_t e = 0; e < edges.size(); ++e) {
    codes *= spines;
  }
  std::vector<int> load;
  const auto at = [&](int leaf, int spine) {
    return static_cast<std::size_t>(leaf) * static_cast<std::size_t>(spines) +
           static_cast<std::size_t>(spine);
  };
  for (int code = 0; code < codes; ++code) {
    load.assign(at(2 * leaves, 0), 0);
    int rest = code;
    for (const LeafPair& edge : edges) {
      ++load[at(edge.source, rest % spines)];
      ++load[at(leaves + edge.target, rest % spines)];
      rest /= spines;
    }
    least = std::min(least, *std::ranges::max_element(load));
  }
  return least;
}

TEST(Colour, NoChoiceOfSinglePathsIsBetterForAnyPermutationOfSixHosts) {
  // All 720 permutations on 3 leaves of 2 and on 2 of 3 hosts, 1 to 3 spines, and every one of the
  // up to 3^6 choices of a spine per flow. The best of these is D / S rounded up (König), never
  // less than spraying's D / S; colouring, which cuts flows only if S does not divide D, is D / S.
  int instances = 0;
  for (const int leaves : {2, 3}) {
    const int hosts = 6 / leaves;
    for (int spines = 1; spines <= 3; ++spines) {
      const LinkGraph graph = leaf_spine(leaves, spines, hosts);
      std::vector<std::int32_t> targets{0, 1, 2, 3, 4, 5};
      do {
        std::vector<FlowEnds> flows;
        std::vector<LeafPair> edges;
        for (std::int32_t host = 0; host < 6; ++host) {
          const std::int32_t target = targets[static_cast<std::size_t>(host)];
          flows.push_back({host, target, kSize});
          if (host / hosts != target / hosts) {
            edges.push_back({host / hosts, target / hosts});
          }
        }
        const int most = largest_degree(edges, leaves);
        ASSERT_EQ(edges.empty() ? 0 : least_whole_load(edges, leaves, spines),
                  (most + spines - 1) / spines);
        ASSERT_NEAR(busiest(graph, flows, Routing::colour), static_cast<double>(most) / spines,
                    1e-7);
        ++instances;
      } while (std::ranges::next_permutation(targets).found);
    }
  }
  EXPECT_EQ(instances, 2 * 3 * 720);
}

RC_GTEST_PROP(Colour, LoadIsThatOfIdealSprayingOnRandomTraffic, ()) {
  const auto leaves = *rc::gen::inRange(2, 9);
  const auto spines = *rc::gen::inRange(1, 9);
  const auto hosts = *rc::gen::inRange(1, 9);
  const LinkGraph graph = leaf_spine(leaves, spines, hosts);
  std::vector<FlowEnds> flows;
  const int count = *rc::gen::inRange(1, 80);
  for (int f = 0; f < count; ++f) {
    flows.push_back({*rc::gen::inRange(0, graph.hosts), *rc::gen::inRange(0, graph.hosts), kSize});
  }
  const double ideal = static_cast<double>(degree(flows, hosts, leaves)) / spines;
  RC_ASSERT(std::abs(busiest(graph, flows, Routing::colour) - ideal) < 1e-6);
}

TEST(Colour, ThreeLevelsCarryAPermutationOfAFullTreeWithoutConflict) {
  // Every host sends one flow and gets one: every link of a full tree carries one at most.
  const LinkGraph graph = *parse_topology("fat_tree:k=8", "test");
  std::vector<FlowEnds> flows;
  for (std::int32_t h = 0; h < graph.hosts; ++h) {
    flows.push_back({h, (h * 37 + 5) % graph.hosts, kSize});
  }
  EXPECT_NEAR(busiest(graph, flows, Routing::colour), 1, 1e-9);
  EXPECT_GT(busiest(graph, flows, Routing::ecmp), 1.5);
}

TEST(SourceRule, IsExactUpAndCollidesDown) {
  // 3 leaves of 2 hosts, 2 spines: leaves 0 and 1 send 2 flows each to leaf 2, one per spine: 2 of
  // 4 on each downlink. With one flow each, cut in 2 halves, both downlinks carry 1.
  const LinkGraph graph = leaf_spine(3, 2, 2);
  EXPECT_NEAR(busiest(graph, {{0, 4, kSize}, {1, 5, kSize}, {2, 4, kSize}, {3, 5, kSize}},
                      Routing::source_rule),
              2, 1e-9);
  EXPECT_NEAR(busiest(graph, {{0, 4, kSize}, {2, 5, kSize}}, Routing::source_rule), 1, 1e-9);
  // Leaf 0 to leaves 1 and 2, leaf 1 to 2 and 0: the second of each goes over spine 1; both to leaf
  // 2 meet if they have the same turn.
  EXPECT_NEAR(busiest(graph, {{0, 2, kSize}, {1, 4, kSize}, {2, 0, kSize}, {3, 5, kSize}},
                      Routing::source_rule),
              2, 1e-9);
  EXPECT_NEAR(
      busiest(graph, {{0, 2, kSize}, {1, 4, kSize}, {2, 0, kSize}, {3, 5, kSize}}, Routing::colour),
      1, 1e-9);
}

TEST(Assign, TheFirstFlowWithoutAWayEndsIt) {
  // Distances to each of 60,000 hosts would be 7.2 GB.
  constexpr std::int32_t kHosts = 60'000;
  LinkGraph graph;
  std::vector<FlowEnds> flows;
  for (std::int32_t h = 0; h < kHosts; ++h) {
    graph.add(VertexKind::host, "h" + std::to_string(h), 0);
    flows.push_back({h, (h + 1) % kHosts, kSize});
  }
  Router router(graph, Routing::ecmp);
  const auto assigned = assign(router, flows);
  ASSERT_FALSE(assigned);
  EXPECT_EQ(assigned.error().to_string(), "no way leads from h0 to h1 with routing ecmp");
}

}  // namespace
}  // namespace orrery::topology
