// SPDX-License-Identifier: Apache-2.0
#include "machine/network/flit/deadlock.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <utility>

namespace orrery::flit {
namespace {

Freedom freedom(const char* topology, Algorithm algorithm, int vcs) {
  const auto graph = parse_network(topology);
  const auto routing = Routing::make(*graph, algorithm, vcs);
  EXPECT_TRUE(routing) << topology;
  return check_dependencies(*routing).freedom;
}

TEST(FlitDeadlock, DependenciesOfRingsAreCircularWithoutClasses) {
  EXPECT_EQ(freedom("torus:5", Algorithm::min, 4), Freedom::circular);
  EXPECT_EQ(freedom("torus:5", Algorithm::dor, 4), Freedom::free);
  EXPECT_EQ(freedom("torus:4x4", Algorithm::valiant, 4), Freedom::free);
  EXPECT_EQ(freedom("torus:4x4", Algorithm::adaptive, 4), Freedom::free);
  EXPECT_EQ(freedom("mesh:4x4", Algorithm::adaptive, 2), Freedom::free);
  EXPECT_EQ(freedom("mesh:4x4", Algorithm::o1turn, 2), Freedom::free);
  EXPECT_EQ(freedom("mesh:4x4", Algorithm::romm, 2), Freedom::free);
  EXPECT_EQ(freedom("dragonfly:p=1,a=4,h=1", Algorithm::min, 2), Freedom::free);
  EXPECT_EQ(freedom("fat_tree:k=3,n=3", Algorithm::nca, 1), Freedom::free);
}

RouterGraph connected_graph() {
  RouterGraph graph;
  graph.name = "random";
  graph.routers = *rc::gen::inRange(2, 12);
  const auto link = [&](std::int32_t a, std::int32_t b) {
    graph.channels.push_back({a, b, 1});
    graph.channels.push_back({b, a, 1});
  };
  for (std::int32_t router = 1; router < graph.routers; ++router) {
    link(*rc::gen::inRange(0, router), router);
  }
  for (int more = *rc::gen::inRange(0, 12); more > 0; --more) {
    const std::int32_t a = *rc::gen::inRange(0, graph.routers);
    const std::int32_t b = *rc::gen::inRange(0, graph.routers);
    if (a != b) {
      link(a, b);
    }
  }
  for (std::int32_t router = 0; router < graph.routers; ++router) {
    graph.nodes.push_back({router, router, 1});
  }
  return graph;
}

/// Returns whether waits can go in a circle, pair by pair: what every route of every pair of nodes
/// may hold and want next; resources that want nothing are taken away until none is left or all
/// want one.
bool is_circular_by_pairs(const Routing& routing) {
  using Resource = std::pair<std::uint32_t, VcMask>;
  const RouterGraph& graph = routing.graph();
  std::map<Resource, std::set<Resource>> wants;
  const std::function<void(const RouteState&, std::uint32_t, const Resource*)> walk =
      [&](const RouteState& state, std::uint32_t router, const Resource* held) {
        std::vector<Routing::Choice> choices;
        routing.all_choices(state, router, choices);
        for (const auto& [next, output, holds] : choices) {
          if (output.port < graph.channels.size()) {
            const Resource wanted{output.port, output.vcs};
            wants[wanted];
            if (held != nullptr) {
              wants[*held].insert(wanted);
            }
            walk(next, static_cast<std::uint32_t>(graph.channels[output.port].target), &wanted);
          }
        }
      };
  for (std::uint32_t source = 0; source < graph.nodes.size(); ++source) {
    for (std::uint32_t target = 0; target < graph.nodes.size(); ++target) {
      for (const RouteState& start : routing.all_starts(source, target)) {
        walk(start, static_cast<std::uint32_t>(graph.nodes[source].inject), nullptr);
      }
    }
  }
  const auto goes = [&](const auto& one) {
    return std::ranges::none_of(one.second, [&](const auto& to) { return wants.contains(to); });
  };
  while (std::erase_if(wants, goes) > 0) {
  }
  return !wants.empty();
}

RC_GTEST_PROP(FlitDeadlock, AWalkOncePerPlaceFindsTheCirclesOfAllPairs, ()) {
  const RouterGraph graph = connected_graph();
  const auto shortest = Routing::make(graph, Algorithm::min, 1);
  RC_ASSERT((check_dependencies(*shortest).freedom == Freedom::circular) ==
            is_circular_by_pairs(*shortest));
  RouterGraph torus = make_grid(Shape::torus, {*rc::gen::inRange(3, 6), *rc::gen::inRange(2, 4)});
  torus.shape = *rc::gen::element(Shape::torus, Shape::graph);  // with and without classes of VCs
  const auto algorithm = torus.shape == Shape::graph ? Algorithm::min : Algorithm::dor;
  const auto rings = Routing::make(torus, algorithm, 2);
  RC_ASSERT((check_dependencies(*rings).freedom == Freedom::circular) ==
            is_circular_by_pairs(*rings));
}

/// Routes that are free by their order are so by all pairs of small networks; large ones are not
/// walked.
TEST(FlitDeadlock, OrderedRoutesAreFreeByAllPairs) {
  for (const char* topology : {"mesh:3x4", "mesh:3x2x2", "torus:5x3", "torus:4x4", "fly:k=2,n=3",
                               "flattened_butterfly:3x3,c=1", "fat_tree:k=2,n=3"}) {
    const auto graph = parse_network(topology);
    int ordered = 0;
    for (const Named<Algorithm>& named : kNames<Algorithm>) {
      const auto routing = Routing::make(*graph, named.value, 4);
      if (routing && routing->traits().is_ordered()) {
        ++ordered;
        EXPECT_FALSE(is_circular_by_pairs(*routing)) << topology << " " << named.name;
      }
    }
    EXPECT_GE(ordered, 1) << topology;
  }
  EXPECT_EQ(freedom("mesh:100x100", Algorithm::dor, 2), Freedom::free);
}

RC_GTEST_PROP(FlitDeadlock, UpDownIsFreeOnAnyConnectedGraph, ()) {
  const RouterGraph graph = connected_graph();
  const auto routing = Routing::make(graph, Algorithm::up_down, 1);
  RC_ASSERT(routing.has_value());
  RC_ASSERT(check_dependencies(*routing).freedom == Freedom::free);
}

}  // namespace
}  // namespace orrery::flit
