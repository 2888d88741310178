// SPDX-License-Identifier: Apache-2.0
#include "machine/topology/link_map.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <set>

namespace orrery::topology {
namespace {

using Kind = DimensionKind;

NetworkDimension dimension(Kind kind, std::int64_t size, Bandwidth bandwidth, Time latency = 1_us) {
  NetworkDimension d;
  d.kind = kind;
  d.size = size;
  d.bandwidth = bandwidth;
  d.latency = latency;
  return d;
}

std::vector<Hop> route(const LinkMap& map, std::int64_t from, std::int64_t to) {
  std::vector<Hop> hops;
  map.route(from, to, hops);
  return hops;
}

TEST(LinkMap, BandwidthOfADeviceSpreadsOverItsLinks) {
  // 120 GB/s per device: a ring of 4 has 60 a direction, a pair 120, 4 fully connected 40 a link, a
  // switch 120.
  EXPECT_EQ(route(LinkMap({dimension(Kind::ring, 4, 120_GBps)}), 0, 1)[0].bandwidth, 60_GBps);
  EXPECT_EQ(route(LinkMap({dimension(Kind::ring, 2, 120_GBps)}), 0, 1)[0].bandwidth, 120_GBps);
  EXPECT_EQ(route(LinkMap({dimension(Kind::fully_connected, 4, 120_GBps)}), 3, 1)[0].bandwidth,
            40_GBps);
  EXPECT_EQ(route(LinkMap({dimension(Kind::switched, 4, 120_GBps)}), 0, 1)[0].bandwidth, 120_GBps);
}

TEST(LinkMap, RingsGoTheShorterWayAndMeshesStayOpen) {
  const LinkMap ring({dimension(Kind::ring, 8, 100_GBps)});
  EXPECT_EQ(route(ring, 0, 3).size(), 3U);
  EXPECT_EQ(route(ring, 0, 5).size(), 3U);
  EXPECT_EQ(route(ring, 0, 4).size(), 4U);
  EXPECT_EQ(route(LinkMap({dimension(Kind::mesh, 8, 100_GBps)}), 0, 7).size(), 7U);
}

TEST(LinkMap, LatencyOfASwitchIsPaidOnce) {
  const auto hops = route(LinkMap({dimension(Kind::switched, 8, 100_GBps, Time(1001))}), 2, 5);
  ASSERT_EQ(hops.size(), 2U);
  EXPECT_EQ(hops[0].latency + hops[1].latency, Time(1001));
}

TEST(LinkMap, SwitchesOfOneNicShareTheirPort) {
  auto inner = dimension(Kind::switched, 4, 100_GBps);
  auto outer = dimension(Kind::switched, 2, 100_GBps);
  EXPECT_EQ(LinkMap({inner, outer}).links(), 32U);
  inner.nic = outer.nic = "nic";
  const LinkMap shared({inner, outer});
  EXPECT_EQ(shared.links(), 16U);
  EXPECT_EQ(route(shared, 0, 1)[0].link, route(shared, 0, 4)[0].link);
}

TEST(LinkMap, DimensionsOfOneNicHaveOnePortWhateverTheirKind) {
  // A ring inside, a switch outside: a hop of the ring passes the ports of both its ends.
  auto inner = dimension(Kind::ring, 4, 100_GBps);
  auto outer = dimension(Kind::switched, 2, 100_GBps);
  inner.nic = outer.nic = "nic";
  const LinkMap map({inner, outer});
  EXPECT_EQ(map.up(1, 1), map.port_out(1, 0));
  const auto hops = route(map, 1, 2);
  ASSERT_EQ(hops.size(), 3U);
  EXPECT_EQ(hops[0], (Hop{map.port_out(1, 0), 100_GBps, Time(0)}));
  EXPECT_EQ(hops[1].bandwidth, 50_GBps);
  EXPECT_EQ(hops[2], (Hop{map.port_in(2, 0), 100_GBps, Time(0)}));
}

TEST(LinkMap, AnOuterSwitchMayGoThroughAnInnerOne) {
  // 64 GB/s of PCIe, 50 of the adapter behind it: the adapter is the slowest, the PCIe port 50/64.
  auto pcie = dimension(Kind::switched, 4, 64_GBps);
  pcie.name = "pcie";
  auto network = dimension(Kind::switched, 2, 50_GBps);
  network.through = "pcie";
  const LinkMap map({pcie, network});
  const Route route = map.message(1, 6);
  EXPECT_EQ(route.links, (std::vector<LinkUse>{{map.up(1, 0), 50.0 / 64},
                                               {map.up(1, 1), 1},
                                               {map.down(6, 1), 1},
                                               {map.down(6, 0), 50.0 / 64}}));
  EXPECT_DOUBLE_EQ(route.seconds_per_byte, 1 / 50e9);
  EXPECT_EQ(route.latency, 1_us);
}

TEST(LinkMap, DevicesOfANodeMayShareItsAdapters) {
  auto network = dimension(Kind::switched, 2, 50_GBps);
  network.node_bandwidth = 100_GBps;
  const LinkMap map({dimension(Kind::switched, 4, 300_GBps), network});
  EXPECT_EQ(map.node_up(0, 1), map.node_up(3, 1));
  EXPECT_NE(map.node_up(3, 1), map.node_up(4, 1));
  EXPECT_EQ(map.owners(map.node_up(5, 1)), 4);
  EXPECT_EQ(map.first_owner(map.node_up(5, 1)), 4);
  const Route route = map.message(1, 6);
  ASSERT_EQ(route.links.size(), 4U);
  EXPECT_EQ(route.links[1], (LinkUse{map.node_up(1, 1), 0.5}));
  EXPECT_EQ(route.links[2], (LinkUse{map.node_down(6, 1), 0.5}));
}

TEST(LinkMap, AMessageIsOneTransferOfItsBusiestLink) {
  // 0 -> 6 on a ring of 8 goes back over 7: two hops, half of the bandwidth (one of two links).
  const Route ring = LinkMap({dimension(Kind::ring, 8, 100_GBps)}).message(0, 6);
  EXPECT_EQ(ring.links.size(), 2U);
  EXPECT_EQ(ring.latency, 2_us);
  EXPECT_DOUBLE_EQ(ring.seconds_per_byte, 1 / 50e9);
  // 4 x 4 torus as two rings: 0 -> 5 = (1, 1), over 1, then up.
  const LinkMap torus({dimension(Kind::ring, 4, 100_GBps), dimension(Kind::ring, 4, 50_GBps)});
  const Route two = torus.message(0, 5);
  EXPECT_EQ(two.dimension, 1);
  ASSERT_EQ(two.links.size(), 2U);
  EXPECT_EQ(two.links[0].weight, 0.5);
  EXPECT_EQ(two.links[1].weight, 1);
  EXPECT_EQ(torus.message(3, 3).dimension, -1);
}

TEST(LinkMap, AnOuterSwitchReachesAnyDeviceDirectly) {
  const LinkMap map(
      {dimension(Kind::switched, 8, 100_GBps), dimension(Kind::switched, 2, 10_GBps)});
  const Route route = map.message(1, 14);  // other node, other slot
  EXPECT_EQ(route.links, (std::vector<LinkUse>{{map.up(1, 1), 1}, {map.down(14, 1), 1}}));
}

TEST(LinkMap, EveryPairOfAFullyConnectedDimensionHasItsOwnLink) {
  // What 0 and 2 send to 1 does not meet.
  const LinkMap map({dimension(Kind::fully_connected, 3, 100_GBps)});
  EXPECT_NE(route(map, 0, 1)[0].link, route(map, 2, 1)[0].link);
}

RC_GTEST_PROP(LinkMap, EveryLinkBelongsToOneDeviceAndDimension, ()) {
  // Routes of two devices to their neighbours never share a first link, and dimension_of finds the
  // dimension that was crossed.
  std::vector<NetworkDimension> dimensions;
  for (int d = *rc::gen::inRange(1, 4); d > 0; --d) {
    dimensions.push_back(
        dimension(*rc::gen::element(Kind::ring, Kind::fully_connected, Kind::switched, Kind::mesh),
                  *rc::gen::inRange<std::int64_t>(2, 6), 100_GBps));
  }
  const LinkMap map(dimensions);
  std::set<LinkId> first;
  std::int64_t stride = 1;
  for (int d = 0; d < static_cast<int>(dimensions.size()); ++d) {
    const std::int64_t size = dimensions[static_cast<std::size_t>(d)].size;
    for (std::int64_t device = 0; device < map.devices(); ++device) {
      if (map.coordinate(device, d) + 1 < size) {
        const auto hops = route(map, device, device + stride);
        RC_ASSERT(first.insert(hops.front().link).second);
        RC_ASSERT(hops.front().link < map.links());
        RC_ASSERT(map.dimension_of(hops.front().link) == d);
        const LinkId link_class = map.class_of(hops.front().link);
        RC_ASSERT(link_class < map.classes());
      }
    }
    stride *= size;
  }
}

}  // namespace
}  // namespace orrery::topology
