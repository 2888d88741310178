// SPDX-License-Identifier: Apache-2.0
/// Networks charge by these laws, by hand. Links of 1 GB/s and 1 us a hop: 1 MB takes 1 ms + 1 us.
#include "simulate/transport.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "builder.h"
#include "collective/group_extents.h"
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

constexpr Bytes kMegabyte{1'000'000};
constexpr Time kMillisecond = 1'000_us;

/// Returns the timeline, which says when each rank is done.
Timeline run_messages(const Traffic& traffic, const machine::Machine& machine, NetworkModel network,
                      Algorithm algorithm = Algorithm::automatic) {
  const graph::Workload workload = traffic.workload();
  EXPECT_TRUE(graph::verify(workload));
  SimulateOptions options;
  options.network = network;
  options.algorithms.fill(workload.groups.size(), algorithm);
  const auto timeline = simulate(workload, machine, options);
  EXPECT_TRUE(timeline) << timeline.error().to_string();
  return timeline.value_or(Timeline{});
}

Time end(const Timeline& timeline, std::size_t rank) {
  return timeline.finish[rank];
}

std::vector<std::int64_t> first_ranks(std::int64_t count) {
  std::vector<std::int64_t> ranks(static_cast<std::size_t>(count));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

class EveryNetwork : public ::testing::TestWithParam<NetworkModel> {};
INSTANTIATE_TEST_SUITE_P(Transport, EveryNetwork,
                         ::testing::Values(NetworkModel::ports, NetworkModel::fifo,
                                           NetworkModel::flow),
                         [](const auto& param) { return std::string(name_of(param.param)); });
class EveryMessageNetwork : public EveryNetwork {};
INSTANTIATE_TEST_SUITE_P(Transport, EveryMessageNetwork,
                         ::testing::Values(NetworkModel::fifo, NetworkModel::flow),
                         [](const auto& param) { return std::string(name_of(param.param)); });

TEST_P(EveryNetwork, AMessageOnIdleLinksTakesItsBytesAndTheLatencyOfItsRoute) {
  for (const topology::DimensionKind kind :
       {topology::DimensionKind::switched, topology::DimensionKind::mesh}) {
    // mesh 0 - 1 - 2: half of the bandwidth each way, two hops of 1 us.
    const bool mesh = kind == topology::DimensionKind::mesh;
    machine::Machine machine = machine_of({dimension(kind, 3)});
    machine.network[0].message_overhead = 5_us;
    const Timeline timeline =
        run_messages(Traffic(3).add({.from = 0, .to = 2, .bytes = kMegabyte}), machine, GetParam());
    EXPECT_EQ(end(timeline, 2), mesh ? 2 * kMillisecond + 7_us : kMillisecond + 6_us);
  }
}

/// A copy of a megabyte that rank 0 makes while it sends another to rank 1.
Time copied_beside_message(graph::CopyDirection direction, bool through) {
  machine::Machine machine = machine_of({dimension(topology::DimensionKind::switched, 2)});
  machine.device.memory.push_back({"host", 1_GiB, 1_GBps, Time(0)});
  machine.device.memory.back().through = through ? machine.network[0].name : "";
  graph::Workload workload = Traffic(2).add({.from = 0, .to = 1, .bytes = kMegabyte}).workload();
  graph::Node copy;
  copy.kind = graph::Node::Kind::copy;
  copy.name = "copy";
  copy.stream = graph::StreamIndex(workload.streams.size());
  copy.group = graph::GroupIndex(std::size_t{0});
  copy.bytes = kMegabyte;
  copy.direction = direction;
  workload.streams.push_back({"copies", "", graph::Order::issue});
  workload.programs[static_cast<std::size_t>(workload.roles[0].program)]
      .templates[0]
      .nodes.push_back(copy);
  const auto timeline = simulate(workload, machine, {});
  EXPECT_TRUE(timeline) << timeline.error().to_string();
  return timeline ? timeline->finish[0] : Time(0);
}

TEST(PortTransport, CopiesShareThePortThatTheirTierGoesThrough) {
  // Both want the whole port out of rank 0: together 2 MB at 1 GB/s, and the message has 1 us to
  // go. In, or beside the port: 1 MB.
  EXPECT_EQ(copied_beside_message(graph::CopyDirection::out, true), 2 * kMillisecond + 1_us);
  EXPECT_EQ(copied_beside_message(graph::CopyDirection::in, true), kMillisecond + 1_us);
  EXPECT_EQ(copied_beside_message(graph::CopyDirection::none, true), kMillisecond + 1_us);
  EXPECT_EQ(copied_beside_message(graph::CopyDirection::out, false), kMillisecond + 1_us);
}

TEST_P(EveryNetwork, TwoMessagesFromOnePortTakeTwice) {
  // Fairly shared both end after 2 ms; first come first served the first ends after 1 ms.
  const machine::Machine machine = machine_of({dimension(topology::DimensionKind::switched, 3)});
  const Timeline timeline = run_messages(Traffic(3)
                                             .add({.from = 0, .to = 1, .bytes = kMegabyte})
                                             .add({.from = 0, .to = 2, .bytes = kMegabyte}),
                                         machine, GetParam());
  const bool in_turn = GetParam() == NetworkModel::fifo;
  EXPECT_EQ(end(timeline, 1), (in_turn ? 1 : 2) * kMillisecond + 1_us);
  EXPECT_EQ(end(timeline, 2), 2 * kMillisecond + 1_us);
}

TEST_P(EveryNetwork, LinksOfAFullyConnectedDimensionAreTheirOwn) {
  // 0 -> 1 and 2 -> 1 pass different links of half of the bandwidth each.
  const machine::Machine machine =
      machine_of({dimension(topology::DimensionKind::fully_connected, 3)});
  const Timeline timeline = run_messages(Traffic(3)
                                             .add({.from = 0, .to = 1, .bytes = kMegabyte})
                                             .add({.from = 2, .to = 1, .bytes = kMegabyte}),
                                         machine, GetParam());
  EXPECT_EQ(timeline.step_time, 2 * kMillisecond + 1_us);
}

TEST_P(EveryNetwork, ARingAllReduceAloneTakesTheClosedForm) {
  // 2 * 7 steps of 1/8 MB and 1 us.
  const machine::Machine machine = machine_of({dimension(topology::DimensionKind::switched, 8)});
  const Timeline timeline =
      run_messages(Traffic(8).add(Gathering{{first_ranks(8)}, Kind::all_reduce, kMegabyte}),
                   machine, GetParam(), Algorithm::ring);
  EXPECT_EQ(timeline.step_time, 14 * (125_us + 1_us));
}

TEST_P(EveryNetwork, PhasesFollowOneAnotherInAllGroupsAtOnce) {
  // 2 x 3, dimension by dimension: reduce_scatter of 6 MB inside (3 MB), all_reduce of the 3 MB
  // left between the nodes (4 steps of 1 MB), all_gather inside.
  machine::Machine machine = machine_of({dimension(topology::DimensionKind::switched, 2),
                                         dimension(topology::DimensionKind::switched, 3)});
  const Timeline timeline =
      run_messages(Traffic(6).add(Gathering{{first_ranks(6)}, Kind::all_reduce, 6 * kMegabyte}),
                   machine, GetParam(), Algorithm::hierarchical);
  EXPECT_EQ(timeline.step_time, 10 * kMillisecond + 6_us);
}

TEST_P(EveryNetwork, AMessageSlowsDownACollectiveOnItsPort) {
  // Rank 0's port sends 14/8 MB of the all-reduce and 1 MB to rank 4.
  const machine::Machine machine = machine_of({dimension(topology::DimensionKind::switched, 8)});
  const Timeline timeline =
      run_messages(Traffic(8)
                       .add(Gathering{{first_ranks(8)}, Kind::all_reduce, kMegabyte})
                       .add({.from = 0, .to = 4, .bytes = kMegabyte}),
                   machine, GetParam(), Algorithm::ring);
  EXPECT_GE(timeline.step_time, 2750_us);
  EXPECT_LE(timeline.step_time, 3800_us);
}

TEST_P(EveryMessageNetwork, ProtocolsCountAsInTheClosedForm) {
  // Launch 20 us, 3 steps of 10 MB at 80 % and 3 us, half of the own chunk copied.
  machine::Machine machine = machine_of({dimension(topology::DimensionKind::switched, 4)});
  machine.network[0].protocols = {{.name = "Simple",
                                   .launch = 20_us,
                                   .step_latency = 3_us,
                                   .efficiency = 0.8,
                                   .local_copy = 0.5}};
  const Timeline timeline =
      run_messages(Traffic(4).add(Gathering{{first_ranks(4)}, Kind::all_gather, 40 * kMegabyte}),
                   machine, GetParam(), Algorithm::ring);
  EXPECT_EQ(timeline.step_time, 20_us + 6'250_us + 3 * (12'500_us + 3_us));
}

TEST_P(EveryMessageNetwork, LinksArePassedAtTheRateOfEachMessagesProtocol) {
  // A shift at 50 % of 1 GB/s and a message at all of it, 0 -> 1 both: 2 ms and 1 ms of the link's
  // time. As flows they get 1/3 GB/s each and end at once; in turn the second's first byte may have
  // to wait for the last hop of the first.
  machine::Machine machine = machine_of({dimension(topology::DimensionKind::switched, 2)});
  machine.network[0].exchange = {{.name = "Simple", .step_latency = 1_us, .efficiency = 0.5}};
  const Timeline timeline = run_messages(Traffic(2)
                                             .add(Gathering{{{0, 1}}, Kind::send_recv, kMegabyte})
                                             .add({.from = 0, .to = 1, .bytes = kMegabyte}),
                                         machine, GetParam());
  EXPECT_GE(timeline.step_time, 3 * kMillisecond + 1_us);
  EXPECT_LE(timeline.step_time, 3 * kMillisecond + 2_us);
}

TEST_P(EveryMessageNetwork, TheSwitchAddsUpMessageByMessage) {
  // 1 us before, two steps of 1 us, and 9/8 of 100 ms on every port; the ring would take 14/8.
  machine::Machine machine = machine_of({dimension(topology::DimensionKind::switched, 8)});
  machine.network[0].in_switch = {{.name = "NVLS", .launch = 1_us, .step_latency = 1_us}};
  const Traffic traffic =
      Traffic(8).add(Gathering{{first_ranks(8)}, Kind::all_reduce, 100 * kMegabyte});
  EXPECT_EQ(run_messages(traffic, machine, NetworkModel::ports).step_time, 112'503_us);
  EXPECT_EQ(run_messages(traffic, machine, GetParam()).step_time, 112'503_us);
}

TEST_P(EveryMessageNetwork, AutomaticTakesTheRingWhereTheSwitchHasNoMessages) {
  // Over two nodes: the ring's 30 steps of 100 MB / 16 = 6.25 ms, two of 16 edges between nodes.
  machine::Machine machine = machine_of({dimension(topology::DimensionKind::switched, 8),
                                         dimension(topology::DimensionKind::switched, 2)});
  machine.network[0].in_switch = {{.name = "NVLS", .launch = 1_us, .step_latency = 1_us}};
  const Traffic traffic =
      Traffic(16).add(Gathering{{first_ranks(16)}, Kind::all_reduce, 100 * kMegabyte});
  EXPECT_GT(run_messages(traffic, machine, GetParam()).step_time, 30 * 5'400_us);

  SimulateOptions options;
  options.network = GetParam();
  options.algorithms.fill(2, Algorithm::in_switch);
  const auto refused = simulate(traffic.workload(), machine, options);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().to_string(),
              ::testing::AllOf(::testing::HasSubstr(name_of(GetParam())),
                               ::testing::HasSubstr("all_reduce of group group 1"),
                               ::testing::HasSubstr("in_switch")));
}

TEST_P(EveryMessageNetwork, MoreMessagesThanAnyoneWaitsForAreRefused) {
  // 14 messages a rank of 8, a hundred million times.
  machine::Machine machine = machine_of({dimension(topology::DimensionKind::switched, 8)});
  graph::Workload workload =
      Traffic(8).add(Gathering{{first_ranks(8)}, Kind::all_reduce, kMegabyte}).workload();
  class Long final : public graph::IssueList {
   public:
    std::unique_ptr<graph::Source> restart() const override { return std::make_unique<Long>(); }
    graph::Instance at(int, std::int64_t) const override { return {}; }
    std::int64_t length(int) const override { return 100'000'000; }
    std::optional<graph::Period> period(int) const override {
      return graph::Period{.first = 0, .end = 100'000'000};
    }
  };
  workload.source = std::make_shared<Long>();
  SimulateOptions options;
  options.network = GetParam();
  options.algorithms.fill(2, Algorithm::ring);
  const auto refused = simulate(workload, machine, options);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().to_string(), ::testing::HasSubstr("1.1e+10 messages"));
}

/// A switch of `devices` laid on a topology.
machine::Machine laid_on(const std::string& spec, std::int64_t devices) {
  machine::Machine machine = machine_of({dimension(topology::DimensionKind::switched, devices)});
  auto graph = topology::load_topology(spec, "test");
  EXPECT_TRUE(graph) << graph.error().to_string();
  machine.wires = {.spec = spec,
                   .graph = std::make_shared<const topology::LinkGraph>(std::move(*graph))};
  return machine;
}

TEST_P(EveryNetwork, ATopologyWithRoomForAllIsTheSwitchThatItStandsFor) {
  // Trunks of 16 times a host's rate hold what 4 hosts of a leaf send, whatever route each takes.
  const std::string roomy =
      "leaf_spine:leaves=2,spines=2,hosts=4,bandwidth=1 GB/s,uplink_bandwidth=16 GB/s";
  const machine::Machine plain = machine_of({dimension(topology::DimensionKind::switched, 8)});
  for (const auto& [kind, algorithm] :
       {std::pair(Kind::all_reduce, Algorithm::ring), std::pair(Kind::all_gather, Algorithm::ring),
        std::pair(Kind::all_reduce, Algorithm::halving_doubling),
        std::pair(Kind::all_to_all, Algorithm::direct),
        std::pair(Kind::all_to_all, Algorithm::pairwise)}) {
    const Traffic traffic = Traffic(8).add(Gathering{{first_ranks(8)}, kind, 56 * kMegabyte});
    const Timeline expected = run_messages(traffic, plain, NetworkModel::ports, algorithm);
    const Timeline timeline = run_messages(traffic, laid_on(roomy, 8), GetParam(), algorithm);
    if (GetParam() == NetworkModel::fifo && algorithm != Algorithm::ring) {
      EXPECT_GE(timeline.finish, expected.finish);  // messages take turns even on a wide trunk
    } else {
      EXPECT_EQ(timeline.finish, expected.finish) << name_of(kind) << name_of(algorithm);
    }
  }
}

TEST_P(EveryNetwork, AnOverSubscribedTrunkIsNotFree) {
  // One trunk of a host's rate for 4 hosts. All-to-all of 8 x 8 MB: 1 MB from each to each; 16 MB
  // pass the trunk each way, 7 MB a host's port.
  const machine::Machine tapered =
      laid_on("leaf_spine:leaves=2,spines=1,hosts=4,bandwidth=1 GB/s", 8);
  const Timeline exchange =
      run_messages(Traffic(8).add(Gathering{{first_ranks(8)}, Kind::all_to_all, 8 * kMegabyte}),
                   tapered, GetParam(), Algorithm::direct);
  EXPECT_GE(exchange.step_time, 16 * kMillisecond + 1_us);
  EXPECT_LE(exchange.step_time, 17 * kMillisecond + 1_us);

  // Pairs at distance 4 cross it, 4 at a time, in one of three steps: 4 MB, then 2 and 1 MB inside,
  // and back. In steps 4, then 2, then 1 apart: (4 * 4 + 2 + 1) * 2.
  const Timeline halving =
      run_messages(Traffic(8).add(Gathering{{first_ranks(8)}, Kind::all_reduce, 8 * kMegabyte}),
                   tapered, GetParam(), Algorithm::halving_doubling);
  const Timeline alone =
      run_messages(Traffic(8).add(Gathering{{first_ranks(8)}, Kind::all_reduce, 8 * kMegabyte}),
                   tapered, NetworkModel::flow, Algorithm::halving_doubling);
  EXPECT_GT(halving.step_time, 17 * kMillisecond);  // 14 on a switch
  EXPECT_NEAR(halving.step_time / alone.step_time, 1,
              GetParam() == NetworkModel::fifo ? 0.06 : 1e-12);
}

TEST(FlitTransport, ATopologyIsItsLinks) {
  // A ring of 4 as a dimension, a link each way of half a device's 1 GB/s, and as a network of
  // links: the same ring all-reduces to the picosecond.
  machine::Machine ring = machine_of({dimension(topology::DimensionKind::ring, 4)});
  machine::Machine laid = ring;
  auto graph = topology::load_topology("torus:shape=4,bandwidth=0.5 GB/s,latency=1 us", "test");
  ASSERT_TRUE(graph) << graph.error().to_string();
  laid.wires = {.spec = "torus",
                .graph = std::make_shared<const topology::LinkGraph>(std::move(*graph))};
  const Traffic traffic =
      Traffic(4).add(Gathering{{first_ranks(4)}, Kind::all_reduce, 4 * kMegabyte});
  EXPECT_EQ(run_messages(traffic, laid, NetworkModel::flit, Algorithm::ring).finish,
            run_messages(traffic, ring, NetworkModel::flit, Algorithm::ring).finish);
}

TEST(FlitTransport, AnOverSubscribedTrunkIsNotFree) {
  // As below for flows: 16 MB pass the trunk each way, and the heads of packets of 4 KiB with them.
  const machine::Machine tapered =
      laid_on("leaf_spine:leaves=2,spines=1,hosts=4,bandwidth=1 GB/s", 8);
  const Timeline exchange =
      run_messages(Traffic(8).add(Gathering{{first_ranks(8)}, Kind::all_to_all, 8 * kMegabyte}),
                   tapered, NetworkModel::flit, Algorithm::direct);
  EXPECT_GE(exchange.step_time, 16 * kMillisecond);
  EXPECT_LE(exchange.step_time, 18 * kMillisecond);
}

TEST_P(EveryNetwork, GroupsOnOneTrunkShareIt) {
  // Rings {0, 4} and {1, 5} meet on the trunk: 2 steps of 4 MB each at half of the rate.
  const machine::Machine tapered =
      laid_on("leaf_spine:leaves=2,spines=1,hosts=4,bandwidth=1 GB/s", 8);
  const Timeline timeline =
      run_messages(Traffic(8).add(Gathering{{{0, 4}, {1, 5}}, Kind::all_reduce, 8 * kMegabyte}),
                   tapered, GetParam(), Algorithm::ring);
  EXPECT_NEAR(timeline.step_time / (16 * kMillisecond + 2_us), 1,
              GetParam() == NetworkModel::fifo ? 1e-3 : 1e-12);
}

TEST_P(EveryNetwork, TheSameRunTwiceIsTheSameTwice) {
  const machine::Machine machine =
      machine_of({dimension(topology::DimensionKind::switched, 4),
                  dimension(topology::DimensionKind::fully_connected, 4)});
  Traffic traffic(16);
  traffic.add(Gathering{{first_ranks(16)}, Kind::all_to_all, 3 * kMegabyte, 3});
  for (std::int64_t rank = 1; rank < 16; ++rank) {
    traffic.add({.from = rank, .to = 0, .bytes = kMegabyte / rank});
  }
  const Timeline one = run_messages(traffic, machine, GetParam());
  const Timeline two = run_messages(traffic, machine, GetParam());
  EXPECT_EQ(one.finish, two.finish);
  EXPECT_EQ(one.by_rank, two.by_rank);
  EXPECT_EQ(one.events, two.events);
}

}  // namespace
}  // namespace orrery::simulate
