// SPDX-License-Identifier: Apache-2.0
#include "machine/topology/link_map.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <set>

namespace orrery {
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

std::vector<Hop> way(const LinkMap& map, std::int64_t from, std::int64_t to) {
  std::vector<Hop> hops;
  map.route(from, to, hops);
  return hops;
}

TEST(LinkMap, BandwidthOfADeviceSpreadsOverItsLinks) {
  // 120 GB/s per device: a ring of 4 has 60 a direction, a pair 120, 4 fully connected 40 a link, a
  // switch 120.
  EXPECT_EQ(way(LinkMap({dimension(Kind::ring, 4, 120_GBps)}), 0, 1)[0].bandwidth, 60_GBps);
  EXPECT_EQ(way(LinkMap({dimension(Kind::ring, 2, 120_GBps)}), 0, 1)[0].bandwidth, 120_GBps);
  EXPECT_EQ(way(LinkMap({dimension(Kind::fully_connected, 4, 120_GBps)}), 3, 1)[0].bandwidth,
            40_GBps);
  EXPECT_EQ(way(LinkMap({dimension(Kind::switched, 4, 120_GBps)}), 0, 1)[0].bandwidth, 120_GBps);
}

TEST(LinkMap, RingsGoTheShorterWayAndMeshesStayOpen) {
  const LinkMap ring({dimension(Kind::ring, 8, 100_GBps)});
  EXPECT_EQ(way(ring, 0, 3).size(), 3U);
  EXPECT_EQ(way(ring, 0, 5).size(), 3U);
  EXPECT_EQ(way(ring, 0, 4).size(), 4U);
  EXPECT_EQ(way(LinkMap({dimension(Kind::mesh, 8, 100_GBps)}), 0, 7).size(), 7U);
}

TEST(LinkMap, LatencyOfASwitchIsPaidOnce) {
  const auto hops = way(LinkMap({dimension(Kind::switched, 8, 100_GBps, Time(1001))}), 2, 5);
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
  EXPECT_EQ(way(shared, 0, 1)[0].link, way(shared, 0, 4)[0].link);
}

RC_GTEST_PROP(LinkMap, EveryLinkBelongsToOneDeviceAndDimension, ()) {
  // Ways of two devices to their neighbours never share a first link, and dimension_of finds the
  // dimension that was crossed.
  std::vector<NetworkDimension> dimensions;
  for (int d = *rc::gen::inRange(1, 4); d > 0; --d) {
    dimensions.push_back(
        dimension(*rc::gen::element(Kind::ring, Kind::fully_connected, Kind::switched, Kind::mesh),
                  *rc::gen::inRange<std::int64_t>(2, 6), 100_GBps));
  }
  const LinkMap map(dimensions, SwitchReach::own_dimension);
  std::set<LinkId> first;
  std::int64_t stride = 1;
  for (int d = 0; d < static_cast<int>(dimensions.size()); ++d) {
    const std::int64_t size = dimensions[static_cast<std::size_t>(d)].size;
    for (std::int64_t device = 0; device < map.devices(); ++device) {
      if (map.coordinate(device, d) + 1 < size) {
        const auto hops = way(map, device, device + stride);
        RC_ASSERT(first.insert(hops.front().link).second);
        RC_ASSERT(hops.front().link < map.links());
        RC_ASSERT(map.dimension_of(hops.front().link) == d);
        const LinkId link_class = map.class_of(hops.front().link);
        RC_ASSERT(link_class < map.classes());
        RC_ASSERT(map.dimension_of_class(link_class) == d);
      }
    }
    stride *= size;
  }
}

}  // namespace
}  // namespace orrery
