// SPDX-License-Identifier: Apache-2.0
#include "machine/topology/makers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

namespace orrery::topology {
namespace {

using ::testing::HasSubstr;

LinkGraph made(const std::string& spec) {
  Result<LinkGraph> graph = parse_topology(spec, "--topology");
  EXPECT_TRUE(graph) << spec << ": " << (graph ? "" : graph.error().to_string());
  return graph ? std::move(*graph) : LinkGraph{};
}

std::string mistakes_of(const std::string& spec) {
  const Result<LinkGraph> graph = parse_topology(spec, "--topology");
  return graph ? "none" : graph.error().to_string();
}

struct Expected {
  const char* spec;
  std::int32_t hosts;
  std::int32_t switches;
  std::int64_t cables;
  std::int32_t diameter;
  double bisection;  ///< in links of one direction
};

class Makers : public ::testing::TestWithParam<Expected> {};

TEST_P(Makers, HaveTheSizesOfTheirFormulas) {
  const Expected& expected = GetParam();
  const LinkGraph graph = made(std::string(expected.spec) + ",bandwidth=1GB/s");
  const GraphFigures found = figures(graph);
  EXPECT_EQ(found.hosts, expected.hosts);
  EXPECT_EQ(found.switches, expected.switches);
  EXPECT_EQ(found.cables, expected.cables);
  EXPECT_EQ(found.diameter, expected.diameter);
  EXPECT_NEAR(found.bisection.value(), expected.bisection * 1e9, 1);
  EXPECT_TRUE(found.connected);
  std::set<std::string> names;
  for (const Vertex& vertex : graph.vertices) {
    EXPECT_TRUE(names.insert(vertex.name).second) << vertex.name;
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, Makers,
    ::testing::Values(
        // A line of n: n-1 cables. 4x4: 2*4*3 cables; the middle cut has 4; corners 6 apart.
        Expected{"mesh:4x4", 16, 0, 24, 6, 4}, Expected{"mesh:shape=4x4", 16, 0, 24, 6, 4},
        Expected{"mesh:shape=4x4,hosts=1", 16, 16, 40, 8, 4},
        // k-ary n-cube: n k^n cables, k/2 per dimension, bisection 2 k^(n-1) (Dally, 1990).
        Expected{"torus:shape=4x4x4", 64, 0, 192, 6, 32},
        // Hosts 0 to 7 are two rows and two of the third: 3 + 1 cables up and down, 2 + 2 around
        // it.
        Expected{"torus:shape=3x5", 15, 0, 30, 3, 8}, Expected{"torus:shape=2x2", 4, 0, 4, 2, 2},
        Expected{"torus:shape=4x2x2x2x2x2", 128, 0, 128 + 5 * 64, 7, 64},
        // 4x4 routers, 3 others per dimension: 16*6/2 cables and 16*4 hosts'. Half of the columns
        // against half: 4 rows of 2*2 cables.
        Expected{"flattened_butterfly:shape=4x4,hosts=4", 64, 16, 48 + 64, 4, 16},
        // k-ary fat tree: k^3/4 hosts, 5k^2/4 switches, 3k^3/4 cables, full bisection.
        Expected{"fat_tree:k=4", 16, 20, 48, 6, 8}, Expected{"fat_tree:k=8", 128, 80, 384, 6, 64},
        Expected{"fat_tree:k=8,levels=2", 32, 12, 64, 4, 16},
        // 2:1: 8 hosts on each of 32 leaves, as many uplinks as before.
        Expected{"fat_tree:k=8,oversubscription=2", 256, 80, 256 + 256, 6, 64},
        Expected{"leaf_spine:leaves=4,spines=2,hosts=4", 16, 6, 16 + 8, 4, 4},
        Expected{"leaf_spine:leaves=4,spines=2,hosts=4,parallel=2", 16, 6, 16 + 16, 4, 8},
        Expected{"clos:down=4x4,up=1x2,parallel=1x2", 16, 6, 16 + 16, 4, 8},
        // Groups of a=4 routers, h=2, g=9: each pair of groups one cable; half (18 hosts of 36
        // routers): by maximal flow below.
        Expected{"dragonfly:hosts=1,routers=2,globals=1,groups=2", 4, 4, 4 + 2 + 2, 4, 2},
        Expected{"dragonfly:hosts=1,routers=2,globals=1,groups=3", 6, 6, 6 + 3 + 3, 5, 3},
        // 2x2 boards of 2x2: every accelerator is on both edges of its lines of 2 once each: 4
        // cables per board, and 2 per board and line of the board to switches.
        Expected{"hammingmesh:board=2x2,shape=2x2", 16, 8, 4 * 4 + 16 + 16, 4, 8},
        // 16 pairs of GPUs linked, by 24 cables; four pairs between the quads, 6 cables.
        Expected{"cube_mesh:links=6", 8, 0, 24, 2, 6},
        Expected{"cube_mesh:links=4", 8, 0, 16, 2, 4},
        Expected{"pcie:sockets=2,switches=2,gpus=2", 8, 6, 8 + 4 + 1, 5, 1},
        Expected{"rail:servers=4,gpus=2,spines=2,nvlink_bandwidth=1GB/s", 8, 8, 8 + 8 + 4, 4, 4},
        Expected{"rail:servers=4,gpus=2,nvlink_bandwidth=1GB/s", 8, 6, 8 + 8, 4, 4}));

TEST(Makers, DragonflyPairsOfGroupsHaveOneCable) {
  const LinkGraph graph = made("dragonfly:hosts=2,routers=4,globals=2");
  EXPECT_EQ(graph.hosts, 72);
  std::set<std::pair<std::int32_t, std::int32_t>> pairs;
  std::vector<int> globals(36);
  for (const GraphLink& link : graph.links) {
    if (link.source < graph.hosts || link.target < graph.hosts) {
      continue;
    }
    const std::int32_t from = link.source - graph.layout.first_router;
    const std::int32_t to = link.target - graph.layout.first_router;
    if (from / 4 != to / 4) {
      EXPECT_TRUE(pairs.insert({from / 4, to / 4}).second);
      ++globals[static_cast<std::size_t>(from)];
    }
  }
  EXPECT_EQ(pairs.size(), 9 * 8);
  EXPECT_EQ(globals, std::vector<int>(36, 2));
}

TEST(Makers, MistakesNameFieldAndWhatWouldBeRight) {
  EXPECT_THAT(mistakes_of("fat_tre:k=4"), HasSubstr("did you mean 'fat_tree'"));
  EXPECT_THAT(mistakes_of("fat_tree"), HasSubstr("k"));
  EXPECT_EQ(mistakes_of("fat_tree:k=5"),
            "--topology: k: found '5', expected an even number of ports");  // and nothing else
  EXPECT_EQ(mistakes_of("clos:down=4x4,up=1x0"),
            "--topology: up: found '1x0', expected 1 to 6 numbers of at least 1 such as 4x4x2");
  EXPECT_THAT(mistakes_of(":"), HasSubstr("--topology: missing; expected one of mesh, torus"));
  EXPECT_THAT(mistakes_of("torus:dims=4x4"),
              HasSubstr("dims: unknown field; known: bandwidth, host_bandwidth, host_latency, "
                        "hosts, latency, shape"));
  EXPECT_THAT(mistakes_of("fat_tree:k=8,bandwith=1GB/s"), HasSubstr("did you mean 'bandwidth'"));
  EXPECT_THAT(mistakes_of("fat_tree:k=8,k=4"), HasSubstr("given twice"));
  EXPECT_THAT(mistakes_of("fat_tree:k"), HasSubstr("field=value"));
  EXPECT_THAT(mistakes_of("torus:shape=4x"), HasSubstr("such as 4x4x2"));
  EXPECT_THAT(mistakes_of("torus:shape=2x2x2x2x2x2x2"), HasSubstr("1 to 6 numbers"));
  EXPECT_THAT(mistakes_of("torus:shape=100000x100000"), HasSubstr("at most 1000000"));
  EXPECT_EQ(mistakes_of("torus:shape=4,bandwidth=0GB/s"),
            "--topology: bandwidth: found '0GB/s', expected a rate above 0");
}

TEST(Makers, EveryHostOfATorusSeesTheSame) {
  // Distances of all pairs of 32,768 hosts take a minute. A ring of 32: at most 16 links, 8 on the
  // mean with oneself; of 4: 2 and 1. Pairs are of different hosts.
  const GraphFigures torus = figures(made("torus:shape=32x32x32"));
  EXPECT_EQ(torus.diameter, 48);
  EXPECT_DOUBLE_EQ(torus.mean_distance, 24.0 * 32'768 / 32'767);
  // With two hosts on each of 16 routers: 2 links more to all others, 0 between routers of one.
  const GraphFigures hosts = figures(made("torus:shape=4x4,hosts=2"));
  EXPECT_EQ(hosts.diameter, 6);
  EXPECT_DOUBLE_EQ(hosts.mean_distance, (32 * 2.0 + 31 * 2) / 31);
  // 4x4 butterfly: 15 others, 6 one link away, 9 two; 16 routers of one host, 2 links of their own.
  EXPECT_DOUBLE_EQ(figures(made("flattened_butterfly:shape=4x4,hosts=1")).mean_distance,
                   2 + (6 + 18) / 15.0);
}

}  // namespace
}  // namespace orrery::topology
