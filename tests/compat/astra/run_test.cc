// SPDX-License-Identifier: Apache-2.0
/// Laws of the engine on systems small enough for hand arithmetic: Ring or Switch with 1 B/ns, 100
/// ns per hop, endpoint delay 10 ns, no reduction cost.
#include "compat/astra/run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace orrery::astra {
namespace {

using chakra::CollectiveType;
using chakra::NodeType;

RunInput system_with(Building building, std::int64_t npus, Algorithm algorithm) {
  RunInput input;
  input.network = {{building, npus, Bandwidth(1e9), 100_ns}};
  for (auto& list : input.system.implementation) {
    list = {{algorithm, 0}};
  }
  input.traces.groups.emplace_back();
  return input;
}

chakra::Node compute_trace(Time duration) {
  chakra::Node node;
  node.type = NodeType::comp;
  node.duration = duration;
  return node;
}
chakra::Node collective_node(CollectiveType type, Bytes size, std::uint32_t group = 0) {
  chakra::Node node;
  node.type = NodeType::comm_coll;
  node.collective = type;
  node.size = size;
  node.group = group;
  return node;
}
chakra::Node message(NodeType type, std::int64_t peer, Bytes size) {
  chakra::Node node;
  node.type = type;
  node.peer = peer;
  node.size = size;
  return node;
}

/// A program of its own for each rank; every node waits for the one before it.
void set_programs(RunInput& input, std::vector<std::vector<chakra::Node>> ranks) {
  for (std::vector<chakra::Node>& nodes : ranks) {
    chakra::Program program;
    program.names = std::string(1, '\0');
    for (std::uint32_t i = 0; i < nodes.size(); ++i) {
      nodes[i].id = i;
      if (i > 0) {
        nodes[i].first_dependency = static_cast<std::uint32_t>(program.dependencies.size());
        nodes[i].dependencies = 1;
        program.dependencies.push_back(i - 1);
      }
    }
    program.nodes = std::move(nodes);
    input.traces.program_of.push_back(static_cast<std::uint32_t>(input.traces.programs.size()));
    input.traces.programs.push_back(std::move(program));
  }
}

std::vector<std::int64_t> cycles(const RunInput& input, RunOptions options = {}) {
  const auto result = run(input, options);
  EXPECT_TRUE(result) << result.error().to_string();
  std::vector<std::int64_t> all;
  for (std::uint32_t index : result ? result->class_of : std::vector<std::uint32_t>{}) {
    all.push_back(result->classes[index].finish.value() / 1000);
  }
  return all;
}

std::string error_of(const RunInput& input, const RunOptions& options = {}) {
  const auto result = run(input, options);
  return result ? "" : result.error().to_string();
}

TEST(AstraRun, a_node_may_wait_for_more_nodes_than_its_state_counts) {
  // 20,000 computations of 1 us one after another on one GPU; the last waits for all of them.
  constexpr std::uint32_t kBefore = 20'000;
  RunInput input = system_with(Building::ring, 2, Algorithm::ring);
  chakra::Program program;
  program.names = std::string(1, '\0');
  for (std::uint32_t i = 0; i <= kBefore; ++i) {
    program.nodes.push_back(compute_trace(1_us));
    program.nodes.back().id = i;
  }
  program.nodes.back().dependencies = kBefore;
  for (std::uint32_t i = 0; i < kBefore; ++i) {
    program.dependencies.push_back(kBefore - 1 - i);
  }
  input.traces.programs = {program};
  input.traces.program_of = {0, 0};
  EXPECT_THAT(cycles(input), ::testing::ElementsAre(20'001'000, 20'001'000));
}

TEST(AstraRun, a_late_rank_holds_up_the_ring_by_as_much_as_it_is_late) {
  // All-gather of 1000 B on 3 NPUs: T = 1100. Rank 0 starts at 5000: it sends at 5010, rank 1 has
  // that at 6110 and passes it on at 6120; rank 2 has it at 7220, done 7230. Rank 0 found both
  // messages of rank 2 waiting (sent at 10 and 1120): it receives the second when it posts it, at
  // 5020, done 5030. Rank 1 is done with its second message, which rank 0 sent at 5020, at 6130.
  RunInput input = system_with(Building::ring, 3, Algorithm::ring);
  const chakra::Node gather = collective_node(CollectiveType::all_gather, Bytes(1000));
  set_programs(input, {{compute_trace(5_us), gather}, {gather}, {gather}});
  EXPECT_THAT(cycles(input), ::testing::ElementsAre(5030, 6130, 7230));
}

TEST(AstraRun, a_message_waits_for_its_receive_and_a_send_does_not) {
  // 100 + 1000 ns on the way; rank 1 asks at 3000, rank 0 is done when it is delivered.
  RunInput input = system_with(Building::ring, 3, Algorithm::ring);
  set_programs(input, {{message(NodeType::comm_send, 1, Bytes(1000))},
                       {compute_trace(3_us), message(NodeType::comm_recv, -1, Bytes(1000))},
                       {}});
  EXPECT_THAT(cycles(input), ::testing::ElementsAre(1100, 3000, 0));
  // Rendezvous: the ready message of 8192 B leaves at 3000 and takes 8292, then the message.
  RunOptions rendezvous;
  rendezvous.rendezvous = true;
  EXPECT_THAT(cycles(input, rendezvous), ::testing::ElementsAre(12392, 12392, 0));
}

TEST(AstraRun, links_serve_messages_in_order) {
  // Both go over the link 0 -> 1 of a ring of 4. Busy 1000, crossing 1100: the first is at 1 at
  // 1100; the second starts at 1000, is at 1 at 2100 and at 2 at 3200.
  RunInput input = system_with(Building::ring, 4, Algorithm::ring);
  std::vector<chakra::Node> sends = {message(NodeType::comm_send, 1, Bytes(1000)),
                                     message(NodeType::comm_send, 2, Bytes(1000))};
  set_programs(input, {sends,
                       {message(NodeType::comm_recv, -1, Bytes(1000))},
                       {message(NodeType::comm_recv, -2, Bytes(1000))},
                       {}});
  input.traces.programs[0].nodes[1].dependencies = 0;
  RunOptions options;
  options.quirks.set(Quirk::one_communication, false);
  options.backend = Backend::aware;
  EXPECT_THAT(cycles(input, options), ::testing::ElementsAre(3200, 1100, 3200, 0));
  // One communication per NPU: the second leaves when the first is there, at 1100.
  options.quirks.set(Quirk::one_communication, true);
  EXPECT_THAT(cycles(input, options), ::testing::ElementsAre(3300, 1100, 3300, 0));
}

TEST(AstraRun, ranks_that_end_at_one_instant_go_on_in_the_order_of_their_messages) {
  // All-reduce of 4000 B on 4 NPUs: six messages of 1100, each processed in 10, end at 6670
  // everywhere. The first messages leave in the order 0 1 2 3, so they are there in the order 1 2 3
  // 0; after six rounds it is 2 3 0 1. Then each stores 100 B in a pool of 1 B/ns, one at a time.
  RunInput input = system_with(Building::ring, 4, Algorithm::ring);
  input.memory = {RemoteMemoryKind::pool, Time(0), Bandwidth(1e9)};
  chakra::Node store = compute_trace(Time(0));
  store.type = NodeType::mem_store;
  store.size = Bytes(100);
  const chakra::Node reduce = collective_node(CollectiveType::all_reduce, Bytes(4000));
  set_programs(input, {{reduce, store}, {reduce, store}, {reduce, store}, {reduce, store}});
  EXPECT_THAT(cycles(input), ::testing::ElementsAre(6970, 7070, 6770, 6870));
}

TEST(AstraRun, a_ready_message_goes_before_a_message) {
  // All-gather of 1000 B as a tree of two: 1 is the root. It is ready at 0, which 0 knows at 8292,
  // when the ready message of 8192 B has crossed. At 10000 rank 0 starts; at 10010 it lets its own
  // ready message go, and then, when the link is free at 18202, the message: there at 19302,
  // processed at 19312; back at 0 at 20412, processed at 20422.
  RunInput input = system_with(Building::fully_connected, 2, Algorithm::double_binary_tree);
  const chakra::Node gather = collective_node(CollectiveType::all_gather, Bytes(1000));
  set_programs(input, {{compute_trace(10_us), gather}, {gather}});
  RunOptions options;
  options.backend = Backend::aware;
  options.rendezvous = true;
  EXPECT_THAT(cycles(input, options), ::testing::ElementsAre(20422, 19312));
}

TEST(AstraRun, a_ring_all_to_all_of_more_messages_than_are_counted_is_refused) {
  // 92683 * 92682 / 2 = 4,295,022,903 > 2^32 - 1 messages of each NPU.
  RunInput input = system_with(Building::ring, 92683, Algorithm::ring);
  set_programs(input, {{collective_node(CollectiveType::all_to_all, Bytes(1) * 92683)}});
  input.traces.program_of.assign(92683, 0);
  EXPECT_THAT(error_of(input), ::testing::HasSubstr("at most 92682"));
}

TEST(AstraRun, involved_dim_speaks_of_every_dimension) {
  RunInput input = system_with(Building::ring, 2, Algorithm::ring);
  input.network.push_back(input.network.front());
  chakra::Node node = collective_node(CollectiveType::all_reduce, 1024_B);
  node.has_involved = true;
  node.involved = 1;
  node.involved_entries = 1;
  set_programs(input, {{node}, {node}, {node}, {node}});
  EXPECT_THAT(error_of(input), ::testing::HasSubstr("involved_dim has 1 entries, expected one per "
                                                    "dimension, 2"));
}

TEST(AstraRun, a_deadlock_names_the_nodes_that_wait) {
  RunInput input = system_with(Building::ring, 2, Algorithm::ring);
  set_programs(input, {{message(NodeType::comm_recv, 1, Bytes(8))}, {compute_trace(1_us)}});
  EXPECT_THAT(error_of(input), ::testing::AllOf(::testing::HasSubstr("deadlock: 1 of 2 ranks"),
                                                ::testing::HasSubstr("rank 0: node 0")));
}

TEST(AstraRun, a_deadlock_counts_every_rank_that_a_class_stands_for) {
  // Ranks 1 to 3 are one class and finish; rank 0 waits for a message that rank 1 never sends.
  RunInput input = system_with(Building::ring, 4, Algorithm::ring);
  set_programs(input, {{message(NodeType::comm_recv, 1, Bytes(8))}, {compute_trace(1_us)}});
  input.traces.program_of = {0, 1, 1, 1};
  EXPECT_THAT(error_of(input), ::testing::HasSubstr("deadlock: 1 of 4 ranks"));
  // All four run alike: none does what its neighbour waits for.
  input.traces.program_of = {0, 0, 0, 0};
  EXPECT_THAT(error_of(input), ::testing::HasSubstr("deadlock: 4 of 4 ranks"));
}

TEST(AstraRun, collectives_that_meet_must_be_equal) {
  RunInput input = system_with(Building::ring, 2, Algorithm::ring);
  set_programs(input, {{collective_node(CollectiveType::all_gather, Bytes(8))},
                       {collective_node(CollectiveType::all_reduce, Bytes(8))}});
  EXPECT_THAT(error_of(input), ::testing::HasSubstr("collectives that meet differ"));
}

TEST(AstraRun, rooted_collectives_and_barriers_need_one_communication_off) {
  // Broadcast among 4 by a tree below rank 0 (0 -> 2 -> 1, 3): d, then T + d per level, T = 1200 on
  // a switch; ranks 0 and 2 are done when their messages are there, at 10 + 1200 and 10 + 1210 +
  // 1200. Barrier: 2 rounds of 200 + 10 after 10.
  RunInput input = system_with(Building::switched, 4, Algorithm::ring);
  const chakra::Node broadcast = collective_node(CollectiveType::broadcast, Bytes(1000));
  set_programs(input, {{broadcast}, {broadcast}, {broadcast}, {broadcast}});
  RunOptions options;
  options.quirks.set(Quirk::one_communication, false);
  EXPECT_THAT(cycles(input, options), ::testing::ElementsAre(1210, 2430, 2420, 2430));
  for (chakra::Program& program : input.traces.programs) {
    program.nodes[0].collective = CollectiveType::barrier;
  }
  EXPECT_THAT(cycles(input, options), ::testing::Each(10 + 2 * 210));
  EXPECT_THAT(error_of(input), ::testing::HasSubstr("one-communication=off"));
}

TEST(AstraRun, gather_and_scatter_move_shares_between_the_root_and_the_others) {
  // 4 shares of 250 B: T = 200 + 250. What is sent at 10 is there at 460, and processed at 470.
  RunInput input = system_with(Building::switched, 4, Algorithm::ring);
  const chakra::Node gather = collective_node(CollectiveType::gather, Bytes(1000));
  set_programs(input, {{gather}, {gather}, {gather}, {gather}});
  RunOptions options;
  options.quirks.set(Quirk::one_communication, false);
  EXPECT_THAT(cycles(input, options), ::testing::ElementsAre(470, 460, 460, 460));
  for (chakra::Program& program : input.traces.programs) {
    program.nodes[0].collective = CollectiveType::scatter;
  }
  EXPECT_THAT(cycles(input, options), ::testing::ElementsAre(460, 470, 470, 470));
}

TEST(AstraRun, the_policy_decides_which_of_two_collectives_goes_first) {
  // Two all-gathers of 2 chunks of 500 B on 2 NPUs: 10 + 600 + 10 = 620 each, one at a time. Chunk
  // 1 of the first has started when the second comes: LIFO then runs the second's two chunks first.
  RunInput input = system_with(Building::ring, 2, Algorithm::ring);
  input.system.splits = 2;
  const chakra::Node gather = collective_node(CollectiveType::all_gather, Bytes(1000));
  set_programs(input,
               {{gather, gather, compute_trace(1_us)}, {gather, gather, compute_trace(1_us)}});
  for (chakra::Program& program : input.traces.programs) {
    program.nodes[1].dependencies = 0;  // both at once
    program.dependencies = {0, 0};      // the computation waits for the first
  }
  RunOptions options;
  options.quirks.set(Quirk::one_communication, false);
  input.system.policy = Policy::fifo;  // first done at 1240, then compute to 2240; second at 2480
  EXPECT_THAT(cycles(input, options), ::testing::Each(4 * 620));
  input.system.policy = Policy::lifo;  // first done last, at 2480
  EXPECT_THAT(cycles(input, options), ::testing::Each(4 * 620 + 1000));
}

TEST(AstraRun, ranks_of_two_stages_are_two_classes) {
  // Stage 0 (ranks 0, 1) sends to stage 1 (ranks 2, 3) and works longer.
  RunInput input = system_with(Building::switched, 4, Algorithm::ring);
  set_programs(input, {{compute_trace(2_us), message(NodeType::comm_send, 2, Bytes(1000))},
                       {message(NodeType::comm_recv, -2, Bytes(1000))}});
  input.traces.program_of = {0, 0, 1, 1};
  const auto result = run(input, {});
  ASSERT_TRUE(result);
  EXPECT_EQ(result->classes.size(), 2u);
  EXPECT_TRUE(result->unfolded.empty());
  EXPECT_THAT(cycles(input), ::testing::Each(2000 + 200 + 1000));
}

TEST(AstraRun, what_does_not_fold_says_why) {
  RunInput input = system_with(Building::switched, 4, Algorithm::double_binary_tree);
  const chakra::Node reduce = collective_node(CollectiveType::all_reduce, Bytes(1000));
  set_programs(input, {{reduce}});
  input.traces.program_of = {0, 0, 0, 0};
  const auto result = run(input, {});
  ASSERT_TRUE(result);
  EXPECT_EQ(result->classes.size(), 4u);
  EXPECT_THAT(result->unfolded, ::testing::ElementsAre(::testing::HasSubstr("tree")));
}

}  // namespace
}  // namespace orrery::astra
