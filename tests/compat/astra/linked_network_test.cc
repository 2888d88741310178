// SPDX-License-Identifier: Apache-2.0
#include "compat/astra/linked_network.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "machine/read_wires.h"
#include "random_input.h"
#include "small_input.h"

namespace orrery::astra {
namespace {

using small_tests::dimension;
using small_tests::input_of;
using small_tests::last;
using small_tests::run_engine;

RunOptions on(Backend backend) {
  RunOptions options = small_tests::quirks_off();
  options.backend = backend;
  return options;
}

chakra::Node linked_message(chakra::NodeType type, std::int64_t id, std::int64_t peer) {
  chakra::Node node;
  node.id = static_cast<std::uint64_t>(id);
  node.type = type;
  node.size = Bytes(1000);
  node.peer = peer;
  return node;
}

/// Ranks 0 and 1 send 1,000 B each to rank 2 over a switch of 1 B/ns, 50 ns a hop.
RunInput two_to_one() {
  RunInput input = input_of({dimension(Building::switched, 3, 1, 50_ns)}, Algorithm::ring, {});
  input.traces.programs.assign(3, input.traces.programs[0]);
  input.traces.program_of = {0, 1, 2};
  input.traces.programs[0].nodes = {linked_message(chakra::NodeType::comm_send, 0, 2)};
  input.traces.programs[1].nodes = {linked_message(chakra::NodeType::comm_send, 0, 1)};
  input.traces.programs[2].nodes = {linked_message(chakra::NodeType::comm_recv, 0, -2),
                                    linked_message(chakra::NodeType::comm_recv, 1, -1)};
  return input;
}

std::vector<std::int64_t> finish_cycles(const RunResult& result) {
  std::vector<std::int64_t> cycles;
  for (const RunResult::Class& one : result.classes) {
    cycles.push_back(one.finish.value() / 1000);
  }
  return cycles;
}

TEST(AstraLinkedNetwork, MessagesShareTheLinkInToTheirReceiver) {
  // Flow: half of the last link each, 2000 + 100. Fifo, cut through: 1000 + 100, the other one a
  // serialisation later. Unaware: neither sees the other.
  using ::testing::ElementsAre;
  const RunInput input = two_to_one();
  EXPECT_THAT(finish_cycles(run_engine(input, on(Backend::unaware))),
              ElementsAre(1100, 1100, 1100));
  EXPECT_THAT(finish_cycles(run_engine(input, on(Backend::flow))), ElementsAre(2100, 2100, 2100));
  EXPECT_THAT(finish_cycles(run_engine(input, on(Backend::fifo))), ElementsAre(1100, 2100, 2100));
}

TEST(AstraLinkedNetwork, PacketsShareTheLinkInToTheirReceiver) {
  // A message of 1,000 B is one packet of 1,064 B, whose last byte has passed both links after
  // 2 * 1,064 + 100 ns; the other's leaves the switch 1,064 ns later.
  EXPECT_THAT(finish_cycles(run_engine(two_to_one(), on(Backend::packet))),
              ::testing::UnorderedElementsAre(2228, 3292, 3292));
}

TEST(AstraLinkedNetwork, PacketsMoveNoFurtherThanWhatMayBeginOthers) {
  // A direct exchange begins messages while others are in flight: never faster than 7 * 1,064 ns
  // of a sender's port, never slower than twice that.
  const RunInput input =
      input_of({dimension(Building::switched, 8, 1, 50_ns)}, Algorithm::direct,
               {small_tests::collective(0, chakra::CollectiveType::all_to_all, Bytes(8000))});
  EXPECT_GE(last(run_engine(input, on(Backend::packet))), 7 * 1064_ns + 100_ns);
  EXPECT_LE(last(run_engine(input, on(Backend::packet))), 14 * 1064_ns + 100_ns);
}

TEST(AstraLinkedNetwork, FlitsMoveNoFurtherThanWhatMayBeginOthers) {
  // Ranks 0 and 1 send 1 MB each to rank 2: they share its link for 2 ms. Meanwhile rank 3
  // computes for 100 us, then sends 1,000 B to rank 4: 1,000 + 64 B of a head over two links of 1
  // B/ns, 50 ns each, and 3 + 3 cycles of routers of 64 ns: below 3 us, whatever the others do.
  RunInput input = two_to_one();
  input.network = {dimension(Building::switched, 5, 1, 50_ns)};
  input.traces.programs.resize(5, input.traces.programs[0]);
  input.traces.program_of = {0, 1, 2, 3, 4};
  for (std::size_t program = 0; program < 3; ++program) {
    for (chakra::Node& node : input.traces.programs[program].nodes) {
      node.size = Bytes(1'000'000);
    }
  }
  chakra::Node work;
  work.type = chakra::NodeType::comp;
  work.duration = 100'000_ns;
  chakra::Node send = linked_message(chakra::NodeType::comm_send, 1, 1);
  send.dependencies = 1;
  input.traces.programs[3].nodes = {work, send};
  input.traces.programs[3].dependencies = {0};
  input.traces.programs[4].nodes = {linked_message(chakra::NodeType::comm_recv, 0, -1)};
  const std::vector<std::int64_t> cycles = finish_cycles(run_engine(input, on(Backend::flit)));
  EXPECT_GE(cycles[2], 2'000'000);
  EXPECT_GE(cycles[4], 101'164);
  EXPECT_LE(cycles[4], 103'000);
}

TEST(AstraLinkedNetwork, MessagesOfADirectExchangeShareTheSendersPort) {
  // All-to-all of 8,000 B on 8 NPUs: 1,000 B to each of the 7 others at a seventh of 1 B/ns.
  const RunInput input =
      input_of({dimension(Building::switched, 8, 1, 50_ns)}, Algorithm::direct,
               {small_tests::collective(0, chakra::CollectiveType::all_to_all, Bytes(8000))});
  EXPECT_EQ(last(run_engine(input, on(Backend::unaware))), 1100_ns);
  EXPECT_EQ(last(run_engine(input, on(Backend::flow))), 7100_ns);
}

TEST(AstraLinkedNetwork, AnInnerDimensionsLinksAreNotTheOuterOnes) {
  // Rank 0 of 2 x 2 sends to both neighbours at once: over links of their own, each alone.
  RunInput input =
      input_of({dimension(Building::ring, 2, 1, 50_ns), dimension(Building::ring, 2, 2, 50_ns)},
               Algorithm::ring, {});
  input.traces.programs.assign(4, input.traces.programs[0]);
  input.traces.program_of = {0, 1, 2, 3};
  input.traces.programs[0].nodes = {linked_message(chakra::NodeType::comm_send, 0, 1),
                                    linked_message(chakra::NodeType::comm_send, 1, 2)};
  input.traces.programs[1].nodes = {linked_message(chakra::NodeType::comm_recv, 0, -1)};
  input.traces.programs[2].nodes = {linked_message(chakra::NodeType::comm_recv, 0, -2)};
  EXPECT_THAT(finish_cycles(run_engine(input, on(Backend::flow))),
              ::testing::ElementsAre(1050, 1050, 550, 0));
}

RC_GTEST_PROP(AstraLinkedNetworkProperty, FlowsThatMeetNobodyTakeWhatUnawareSays, ()) {
  // One chunk: rings of one way round, direct exchange on links of its own.
  Dimension one{one_of({Building::ring, Building::fully_connected, Building::switched}), pick(2, 9),
                Bandwidth(one_of({50.0, 100.0, 333.0}) * 1073741824.0), Time(pick(1, 3) * 250'000)};
  const bool direct = one.building == Building::fully_connected;
  RunInput input = input_of({one}, direct ? Algorithm::direct : Algorithm::ring, {});
  for (std::int64_t n = pick(1, 3); n > 0; --n) {
    append_random(input.traces.programs[0], random_compute());
    chakra::Node node = random_collective(1);
    node.has_involved = false;
    append_random(input.traces.programs[0], node);
  }
  input.system.endpoint_delay = Time(pick(0, 3) * 10'000);
  input.system.policy = Policy::fifo;
  RunOptions unaware;
  RunOptions flow;
  flow.backend = Backend::flow;
  RC_ASSERT(last(run_engine(input, flow)) == last(run_engine(input, unaware)));
}

TEST(AstraLinkedNetwork, MessagesPassATopologysLinks) {
  // Two leaves with one trunk of 1 B/ns: of an all-to-all of 8 NPUs 4 x 4 messages of 1,000 B
  // cross it each way; four hops of 1 us.
  ConfigNode spec;
  spec.kind = ConfigNode::Kind::scalar;
  spec.text = "leaf_spine:leaves=2,spines=1,hosts=4,bandwidth=1GB/s,latency=1us";
  const RunInput input =
      input_of({dimension(Building::switched, 8, 1, 50_ns)}, Algorithm::direct,
               {small_tests::collective(0, chakra::CollectiveType::all_to_all, Bytes(8000))});
  RunOptions options = on(Backend::flow);
  options.wires = *machine::read_wires(spec, 8);
  EXPECT_EQ(last(run_engine(input, options)), 20'000_ns);
  options.backend = Backend::flit;
  const auto refused = run(input, options);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().to_string(), ::testing::HasSubstr("expected fifo, flow or packet"));
}

TEST(AstraLinkedNetwork, FlitsCarryHeadsBeside) {
  // A head flit for every 64: 1.6 % more than the flow, and at most a packet and some hops.
  const RunInput input =
      input_of({dimension(Building::ring, 4, 50, 500_ns)}, Algorithm::ring,
               {small_tests::collective(0, chakra::CollectiveType::all_gather, Bytes(16'000'000))});
  const double flow = to_seconds(last(run_engine(input, on(Backend::flow))));
  const double flit = to_seconds(last(run_engine(input, on(Backend::flit))));
  EXPECT_GT(flit, 1.014 * flow);
  EXPECT_LT(flit, 1.02 * flow);
}

}  // namespace
}  // namespace orrery::astra
