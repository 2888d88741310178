// SPDX-License-Identifier: Apache-2.0
#include "machine/topology/topology.h"

#include <gtest/gtest.h>

#include <set>

namespace orrery {
namespace {

NetworkDimension dimension(DimensionKind kind, std::int64_t size, Time latency = 1_us) {
  NetworkDimension result;
  result.name = "d";
  result.kind = kind;
  result.size = size;
  result.bandwidth = 100_GBps;
  result.latency = latency;
  return result;
}

TEST(Topology, DevicesAreNumberedInnermostDimensionFirst) {
  const Topology topology(
      {dimension(DimensionKind::switched, 8), dimension(DimensionKind::switched, 4)});
  EXPECT_EQ(topology.devices(), 32);
  EXPECT_EQ(topology.coordinate(19, 0), 3);  // 19 = 2 * 8 + 3
  EXPECT_EQ(topology.coordinate(19, 1), 2);
}

TEST(Topology, SwitchRouteUsesSendersOutAndReceiversInPort) {
  const Topology topology({dimension(DimensionKind::switched, 8)});
  const Route route = topology.route(2, 5);
  EXPECT_EQ(route.links, (std::vector<LinkId>{topology.out_link(2, 0), topology.in_link(5, 0)}));
  EXPECT_EQ(route.latency, 1_us);
  EXPECT_DOUBLE_EQ(route.seconds_per_byte, 1 / 100e9);
}

TEST(Topology, OuterSwitchReachesAnyDeviceDirectly) {
  const Topology topology(
      {dimension(DimensionKind::switched, 8), dimension(DimensionKind::switched, 2)});
  const Route route = topology.route(1, 14);  // other node, other slot
  EXPECT_EQ(route.dimension, 1);
  EXPECT_EQ(route.links, (std::vector<LinkId>{topology.out_link(1, 1), topology.in_link(14, 1)}));
}

TEST(Topology, RingTakesTheShorterWay) {
  // 0 -> 6 on a ring of 8 goes back over 7: two hops, half of the bandwidth (one of two links).
  const Topology topology({dimension(DimensionKind::ring, 8)});
  const Route route = topology.route(0, 6);
  EXPECT_EQ(route.links, (std::vector<LinkId>{topology.in_link(0, 0), topology.in_link(7, 0)}));
  EXPECT_EQ(route.latency, 2_us);
  EXPECT_DOUBLE_EQ(route.seconds_per_byte, 1 / 50e9);
}

TEST(Topology, MeshHasNoWrap) {
  const Topology topology({dimension(DimensionKind::mesh, 4)});
  EXPECT_EQ(topology.route(3, 0).links.size(), 3U);
  EXPECT_EQ(topology.route(0, 3).latency, 3_us);
}

TEST(Topology, FullyConnectedPairHasItsShareOfTheBandwidth) {
  // 5 devices: 4 links each, a quarter of 100 GB/s on each.
  const Topology topology({dimension(DimensionKind::fully_connected, 5)});
  EXPECT_DOUBLE_EQ(topology.route(0, 3).seconds_per_byte, 1 / 25e9);
}

TEST(Topology, TwoRingsAreCrossedInnermostFirst) {
  // 4 x 4 torus as two rings: 0 -> 5 = (1, 1): over 1, then up.
  const Topology topology({dimension(DimensionKind::ring, 4), dimension(DimensionKind::ring, 4)});
  const Route route = topology.route(0, 5);
  EXPECT_EQ(route.links, (std::vector<LinkId>{topology.out_link(0, 0), topology.out_link(1, 1)}));
  EXPECT_EQ(route.dimension, 1);
}

TEST(Topology, DimensionsOnOneNicShareThePort) {
  NetworkDimension inner = dimension(DimensionKind::switched, 2);
  NetworkDimension outer = dimension(DimensionKind::switched, 2);
  inner.nic = outer.nic = "nic0";
  const Topology shared({inner, outer});
  EXPECT_EQ(shared.out_link(3, 0), shared.out_link(3, 1));
  outer.nic = "nic1";
  const Topology separate({inner, outer});
  EXPECT_NE(separate.out_link(3, 0), separate.out_link(3, 1));
}

TEST(Topology, WholeRingCollectiveUsesEveryLinkOnce) {
  const Topology topology({dimension(DimensionKind::ring, 6)});
  std::set<LinkId> links;
  for (std::int64_t device = 0; device < 6; ++device) {
    for (const LinkId link : topology.collective_links(device, 0, 6, 1)) {
      EXPECT_TRUE(links.insert(link).second);
    }
  }
  EXPECT_EQ(links.size(), topology.links());
}

TEST(Topology, PartOfARingUsesOnlyTheLinksBetweenItsMembers) {
  // Members 2, 3 of pairs on a ring of 8: the link 2 -> 3 and the link 3 -> 2.
  const Topology topology({dimension(DimensionKind::ring, 8)});
  EXPECT_EQ(topology.collective_links(2, 0, 2, 1),
            (std::vector<LinkId>{topology.out_link(2, 0), topology.in_link(3, 0)}));
  EXPECT_TRUE(topology.collective_links(3, 0, 2, 1).empty());
}

TEST(Topology, StridedGroupOnARingCrossesTheDevicesBetween) {
  // Members 0 and 4 of a mesh of 8, stride 4: four links there, four back.
  const Topology topology({dimension(DimensionKind::mesh, 8)});
  EXPECT_EQ(topology.collective_links(0, 0, 2, 4).size(), 8U);
}

}  // namespace
}  // namespace orrery
