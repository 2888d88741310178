// SPDX-License-Identifier: Apache-2.0
/// Network packet under the loop, by hand. Links of 1 GB/s and 1 us a hop.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "builder.h"
#include "machine/topology/read.h"
#include "simulate/simulate.h"
#include "traffic.h"

namespace orrery::simulate {
namespace {

using testing::dimension;
using testing::Gathering;
using testing::machine_of;
using testing::Traffic;
using Kind = graph::CollectiveKind;
using Algorithm = collective::CollectiveAlgorithm;

constexpr Bytes kMega{1'000'000};
const std::vector<std::int64_t> kEightDevices{0, 1, 2, 3, 4, 5, 6, 7};

Timeline run_packets_of(const Traffic& traffic, const machine::Machine& machine,
                        Algorithm algorithm = Algorithm::automatic) {
  const graph::Workload workload = traffic.workload();
  SimulateOptions options;
  options.network = NetworkModel::packet;
  options.algorithms.fill(workload.groups.size(), algorithm);
  const auto timeline = simulate(workload, machine, options);
  EXPECT_TRUE(timeline) << timeline.error().to_string();
  return timeline.value_or(Timeline{});
}

std::shared_ptr<const topology::LinkGraph> links_of(const std::string& spec) {
  auto graph = topology::load_topology(spec, "test");
  EXPECT_TRUE(graph) << graph.error().to_string();
  return std::make_shared<const topology::LinkGraph>(std::move(*graph));
}

/// A packet of RoCE of 9,000 B and a header of 64 B on a link of 1 GB/s.
constexpr Time kPacket{9'064'000};

machine::Machine with_packets(machine::Machine machine, network::Protocol protocol) {
  machine.packet.protocol = protocol;
  return machine;
}

TEST(PacketTransport, WithoutContentionItIsFlowBesideHeadersAndWholePackets) {
  // A message of 1 MB is 112 packets, stored once on a switch: 113 of them instead of 1 ms.
  const machine::Machine machine = with_packets(
      machine_of({dimension(topology::DimensionKind::switched, 8)}), network::Protocol::roce);
  const Timeline one =
      run_packets_of(Traffic(8).add({.from = 0, .to = 2, .bytes = kMega}), machine);
  EXPECT_EQ(one.finish[2], kPacket * 113 + 1_us);
  // 2 * 7 steps of 1/8 MB: 14 packets and one; acknowledgements of 64 B for each of 14 packets
  // share the links.
  const Timeline ring =
      run_packets_of(Traffic(8).add(Gathering{{kEightDevices}, Kind::all_reduce, kMega}), machine,
                     Algorithm::ring);
  EXPECT_GE(ring.step_time, 14 * (kPacket * 15 + 1_us));
  EXPECT_LE(ring.step_time, 14 * (kPacket * 15 + 1_us + Time(64'000) * 14));
}

TEST(PacketTransport, ATopologyIsItsLinks) {
  // As of flits: a ring as a dimension and as a network of links.
  const machine::Machine ring = with_packets(
      machine_of({dimension(topology::DimensionKind::ring, 4)}), network::Protocol::roce);
  machine::Machine laid = ring;
  laid.wires = {.spec = "torus",
                .graph = links_of("torus:shape=4,bandwidth=0.5 GB/s,latency=1 us")};
  const Traffic traffic = Traffic(4).add(Gathering{{{0, 1, 2, 3}}, Kind::all_reduce, 4 * kMega});
  EXPECT_EQ(run_packets_of(traffic, laid, Algorithm::ring).finish,
            run_packets_of(traffic, ring, Algorithm::ring).finish);
}

TEST(PacketTransport, AnOverSubscribedTrunkIsNotFree) {
  // As of flows: 16 MB pass the trunk each way, with headers (64 of 4,150 B) and credits.
  for (const network::Protocol protocol : {network::Protocol::eqds, network::Protocol::roce}) {
    machine::Machine tapered =
        with_packets(machine_of({dimension(topology::DimensionKind::switched, 8)}), protocol);
    tapered.wires = {.spec = "leaf_spine",
                     .graph = links_of("leaf_spine:leaves=2,spines=1,hosts=4,bandwidth=1 GB/s")};
    const Traffic traffic = Traffic(8).add(Gathering{{kEightDevices}, Kind::all_to_all, 8 * kMega});
    const Timeline exchange = run_packets_of(traffic, tapered, Algorithm::direct);
    EXPECT_GE(exchange.step_time, 16 * 1'000_us);
    EXPECT_LE(exchange.step_time, 21 * 1'000_us);
    const Timeline again = run_packets_of(traffic, tapered, Algorithm::direct);
    EXPECT_EQ(exchange.finish, again.finish);
    EXPECT_EQ(exchange.by_rank, again.by_rank);
  }
}

TEST(PacketTransport, ASprayedMessageTakesAllRoutes) {
  // Two hosts of a leaf to two of the other over two spines: each message on both, 2 MB over
  // 2 GB/s. One of them over two spines is as fast as its port.
  machine::Machine laid = with_packets(
      machine_of({dimension(topology::DimensionKind::switched, 8)}), network::Protocol::roce);
  laid.wires = {.spec = "leaf_spine",
                .routing = topology::Routing::spray,
                .graph = links_of("leaf_spine:leaves=2,spines=2,hosts=4,bandwidth=1 GB/s")};
  for (const std::int64_t senders : {1, 2, 4}) {
    Traffic traffic(8);
    for (std::int64_t rank = 0; rank < senders; ++rank) {
      traffic.add({.from = rank, .to = rank + 4, .bytes = kMega});
    }
    const Time sprayed = run_packets_of(traffic, laid).step_time;
    const Time least = std::max<std::int64_t>(2, senders) * 500_us;
    EXPECT_GE(sprayed, least);
    // 64 path ids fall 32 +- 4 on a spine: two standard deviations, and ports that pause others.
    EXPECT_LE(sprayed, least * (senders == 1 ? 1.05 : 1.4));
  }
}

TEST(PacketTransport, ARunOfTooManyPacketsIsRefusedBeforeItBegins) {
  // 1 PB: 2.4e11 packets over two links.
  graph::Workload workload =
      Traffic(2).add({.from = 0, .to = 1, .bytes = Bytes(1'000'000'000'000'000)}).workload();
  SimulateOptions options;
  options.network = NetworkModel::packet;
  const auto refused =
      simulate(workload, machine_of({dimension(topology::DimensionKind::switched, 2)}), options);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().to_string().find("about 4.9e+11 times"), std::string::npos)
      << refused.error().to_string();
}

TEST(PacketTransport, PausesThatWaitForEachOtherAreTheDeadlocksCause) {
  machine::Machine machine = with_packets(machine_of({dimension(topology::DimensionKind::ring, 4)}),
                                          network::Protocol::roce);
  machine.packet.pause = 1;
  machine.packet.resume = 1;
  Traffic traffic(4);
  for (std::int64_t rank = 0; rank < 4; ++rank) {
    traffic.add({.from = rank, .to = (rank + 2) % 4, .bytes = kMega});
  }
  SimulateOptions options;
  options.network = NetworkModel::packet;
  const auto stuck = simulate(traffic.workload(), machine, options);
  ASSERT_FALSE(stuck);
  EXPECT_NE(stuck.error().to_string().find("pauses of roce wait for each other"), std::string::npos)
      << stuck.error().to_string();
}

}  // namespace
}  // namespace orrery::simulate
