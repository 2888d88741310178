// SPDX-License-Identifier: Apache-2.0
/// Small traces on small machines, by hand.
#include "workload/chakra/to_workload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "machine/machine.h"
#include "simulate/simulate.h"
#include "traces.h"

namespace orrery::chakra {
namespace {

using ::testing::HasSubstr;

/// Devices of 1 TFLOP/s and 1 GB/s behind a switch: a message takes 1 ns per byte and 1 us.
machine::Machine switch_of(std::int64_t devices) {
  topology::NetworkDimension dimension;
  dimension.name = "switch";
  dimension.kind = topology::DimensionKind::switched;
  dimension.size = devices;
  dimension.bandwidth = 1_GBps;
  dimension.latency = 1_us;
  machine::Machine machine;
  machine.name = "test";
  machine.device.peak.fill(1_TFLOPs);
  machine.device.memory = {{"memory", 1_GiB, 1_GBps, Time(0)}, {"host", 1_GiB, 1_GBps, Time(0)}};
  machine.device.kernels.gemm_launch = Time(0);
  machine.device.kernels.gemm_peak_share = 1;
  machine.device.kernels.gemm_memory_share = 1;
  machine.network = {dimension};
  return machine;
}

ProtoNode lasting(std::uint64_t id, std::uint64_t microseconds,
                  std::initializer_list<std::uint64_t> after = {}) {
  ProtoNode node = proto_node(id, ChakraProtoMsg::COMP_NODE, after);
  node.set_duration_micros(microseconds);
  return node;
}

ProtoNode after(ProtoNode node, std::initializer_list<std::uint64_t> before) {
  for (const std::uint64_t id : before) {
    node.add_data_deps(id);
  }
  return node;
}

ProtoNode collective_node(std::uint64_t id, ChakraProtoMsg::CollectiveCommType type,
                          std::int64_t bytes, const std::string& group = "") {
  ProtoNode node = proto_node(id, ChakraProtoMsg::COMM_COLL_NODE);
  attribute(node, "comm_type")->set_int64_val(type);
  attribute(node, "comm_size")->set_int64_val(bytes);
  if (!group.empty()) {
    attribute(node, "pg_name")->set_string_val(group);
  }
  return node;
}

ProtoNode memory(std::uint64_t id, bool stores, std::uint64_t bytes) {
  ProtoNode node =
      proto_node(id, stores ? ChakraProtoMsg::MEM_STORE_NODE : ChakraProtoMsg::MEM_LOAD_NODE);
  attribute(node, "tensor_size")->set_uint64_val(bytes);
  return node;
}

/// Returns traces that have gone through files, as a user's do.
TraceSet traces_of(const std::vector<std::vector<ProtoNode>>& ranks,
                   const std::string& groups = "") {
  const Folder folder;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    folder.write("t." + std::to_string(rank) + ".et", et(ranks[rank]));
  }
  LoadOptions options{.prefix = folder / "t",
                      .ranks = static_cast<std::int64_t>(ranks.size()),
                      .groups = {},
                      .progress = {}};
  if (!groups.empty()) {
    options.groups = folder.write("groups.json", groups);
  }
  auto loaded = load(options);
  EXPECT_TRUE(loaded.has_value()) << loaded.error().to_string();
  return loaded ? std::move(*loaded) : TraceSet{};
}

graph::Workload workload_of(const TraceSet& traces, const ToWorkloadOptions& options = {}) {
  auto made = to_workload(traces, options);
  EXPECT_TRUE(made.has_value()) << made.error().to_string();
  return made ? std::move(*made) : graph::Workload{};
}

Time time_of(const TraceSet& traces, const ToWorkloadOptions& options = {}) {
  const auto timeline = simulate::simulate(workload_of(traces, options), switch_of(traces.ranks()),
                                           simulate::SimulateOptions{});
  EXPECT_TRUE(timeline.has_value()) << timeline.error().to_string();
  return timeline ? timeline->step_time : Time(0);
}

std::string refusal(const TraceSet& traces, const ToWorkloadOptions& options = {}) {
  const auto made = to_workload(traces, options);
  EXPECT_FALSE(made.has_value());
  return made ? "" : made.error().to_string();
}

TEST(ToWorkload, a_message_lets_the_other_rank_compute) {
  // 10 us of computing, 1 MB at 1 GB/s = 1000 us and 1 us on the way, 20 us of computing.
  const TraceSet traces = traces_of({{lasting(0, 10), after(message(1, true, 1, 1'000'000), {0})},
                                     {message(0, false, 0, 1'000'000), lasting(1, 20, {0})}});
  EXPECT_EQ(time_of(traces), 1031_us);
}

TEST(ToWorkload, nodes_listed_before_what_they_depend_on_run_after_it) {
  // Node 1 (5 us) waits for 3 (7 us), 2 (1 us) for both.
  const TraceSet traces = traces_of({{lasting(1, 5, {3}), lasting(2, 1, {1, 3}), lasting(3, 7)}});
  const graph::Workload workload = workload_of(traces);
  ASSERT_EQ(workload.programs.front().templates.front().nodes.size(), 3u);
  EXPECT_EQ(workload.programs.front().templates.front().nodes.front().name, "n3");
  EXPECT_EQ(time_of(traces), 13_us);
}

TEST(ToWorkload, kernels_run_one_at_a_time_as_they_become_ready) {
  // Node 0 waits for a message of 1001 us; 1 does not, although it is listed later.
  const TraceSet traces =
      traces_of({{message(0, false, 1, 1'000'000), lasting(1, 10, {0}), lasting(2, 500)},
                 {message(0, true, 0, 1'000'000)}});
  EXPECT_EQ(time_of(traces), 1011_us);
}

TEST(ToWorkload, the_input_of_an_all_gather_is_one_ranks) {
  // 4 ranks of 1 MB each receive 3 MB: 3 ms. An all-reduce of 1 MB moves 2 * 3/4 MB: 1.5 ms.
  const auto on_all = [](const ProtoNode& node) {
    return traces_of({{node}, {node}, {node}, {node}});
  };
  const Time gather = time_of(on_all(collective_node(0, ChakraProtoMsg::ALL_GATHER, 1'000'000)));
  const Time reduce = time_of(on_all(collective_node(0, ChakraProtoMsg::ALL_REDUCE, 1'000'000)));
  EXPECT_GE(gather, 3_ms);
  EXPECT_LE(gather, 3_ms + 10_us);
  EXPECT_GE(reduce, 1500_us);
  EXPECT_LE(reduce, 1510_us);
}

TEST(ToWorkload, a_reduce_takes_as_long_as_a_broadcast) {
  const auto on_two = [](ChakraProtoMsg::CollectiveCommType type) {
    return time_of(traces_of({{collective_node(0, type, 1000)}, {collective_node(0, type, 1000)}}));
  };
  EXPECT_EQ(on_two(ChakraProtoMsg::REDUCE), on_two(ChakraProtoMsg::BROADCAST));
}

TEST(ToWorkload, a_barrier_waits_for_the_last) {
  const auto rank = [](std::uint64_t microseconds) {
    ProtoNode barrier = proto_node(1, ChakraProtoMsg::COMM_COLL_NODE, {0});
    attribute(barrier, "comm_type")->set_int64_val(ChakraProtoMsg::BARRIER);
    return std::vector<ProtoNode>{lasting(0, microseconds), barrier, lasting(2, 10, {1})};
  };
  const Time time = time_of(traces_of({rank(100), rank(5)}));
  EXPECT_GE(time, 110_us);
  EXPECT_LE(time, 120_us);
}

TEST(ToWorkload, the_cpu_works_beside_the_kernels) {
  const auto cpu = [](std::uint64_t id) {
    ProtoNode node = lasting(id, 30);
    attribute(node, "is_cpu_op")->set_bool_val(true);
    return node;
  };
  // Two of 30 us one after the other, 50 us of kernels beside them.
  EXPECT_EQ(time_of(traces_of({{cpu(0), cpu(1), lasting(2, 50)}})), 60_us);
}

TEST(ToWorkload, without_durations_the_machine_times_operations_and_bytes) {
  const auto rank = [](std::int64_t operations, std::uint64_t bytes, std::uint64_t duration) {
    ProtoNode node = proto_node(0, ChakraProtoMsg::COMP_NODE);
    attribute(node, "num_ops")->set_int64_val(operations);
    attribute(node, "tensor_size")->set_uint64_val(bytes);
    node.set_duration_micros(duration);
    return traces_of({{node}});
  };
  EXPECT_EQ(time_of(rank(2'000'000'000, 1'000'000, 0)), 2_ms);  // 1 TFLOP/s
  EXPECT_EQ(time_of(rank(2'000'000'000, 3'000'000, 0)), 3_ms);  // 1 GB/s
  EXPECT_EQ(time_of(rank(2'000'000'000, 3'000'000, 7)), 7_us);
  ToWorkloadOptions timed;
  timed.durations = false;
  EXPECT_EQ(time_of(rank(2'000'000'000, 3'000'000, 7), timed), 3_ms);
}

TEST(ToWorkload, a_duration_of_zero_among_others_is_no_time) {
  ProtoNode rounded = compute(1, {0});  // 1000 operations, less than a microsecond
  EXPECT_EQ(time_of(traces_of({{lasting(0, 5), rounded}})), 5_us);
}

TEST(ToWorkload, memory_nodes_are_copies_of_a_tier_or_kernels) {
  const TraceSet traces = traces_of({{memory(0, false, 1'000'000), memory(1, true, 1'000'000)}});
  // Loads and stores have an engine each; in the device's own memory they are kernels.
  ToWorkloadOptions to_host;
  to_host.memory_tier = 1;
  EXPECT_EQ(time_of(traces, to_host), 1_ms);
  EXPECT_EQ(time_of(traces), 2_ms);
}

TEST(ToWorkload, regular_groups_are_digits_and_their_ranks_fold) {
  const auto rank = [](const std::string& group) {
    return std::vector<ProtoNode>{lasting(0, 10), after(all_reduce(1, 1000, group), {0})};
  };
  const TraceSet traces =
      traces_of({rank("1"), rank("2"), rank("1"), rank("2")}, R"({"1": [0, 2], "2": [1, 3]})");
  const graph::Workload workload = workload_of(traces);
  EXPECT_EQ(workload.groups.front().name, "group 1");
  EXPECT_EQ(workload.groups.front().members.digits, (std::vector<graph::Digit>{{2, 2}}));
  const auto timeline = simulate::simulate(workload, switch_of(4), {});
  ASSERT_TRUE(timeline.has_value());
  EXPECT_EQ(timeline->fold.simulated, 1);
}

TEST(ToWorkload, irregular_groups_run_as_lists) {
  // {0, 3} and {1, 2, 4}: two numbers of members, in no rank's digits.
  const auto rank = [](const std::string& group) {
    return std::vector<ProtoNode>{all_reduce(0, 1'000'000, group)};
  };
  const TraceSet traces = traces_of({rank("1"), rank("2"), rank("2"), rank("1"), rank("2")},
                                    R"({"1": [0, 3], "2": [1, 2, 4]})");
  const graph::Workload workload = workload_of(traces);
  EXPECT_FALSE(workload.groups.front().members.by_digits());
  // Of three members 2 * 2/3 MB: 1333 us, the two take 1 ms.
  const Time time = time_of(traces);
  EXPECT_GE(time, 1333_us);
  EXPECT_LE(time, 1345_us);
}

TEST(ToWorkload, communicators_that_share_ranks_are_families_of_their_own) {
  // A ring of pairs, all of one program: slot 1 with the next rank, slot 2 with the previous. Of 3
  // pairs no two are disjoint.
  const std::string groups = R"({"1": [0, 1], "2": [1, 2], "3": [0, 2]})";
  const auto rank = [](const std::string& first, const std::string& second) {
    return std::vector<ProtoNode>{all_reduce(0, 1000, first),
                                  after(all_reduce(1, 1000, second), {0})};
  };
  const TraceSet traces = traces_of({rank("1", "3"), rank("1", "2"), rank("3", "2")}, groups);
  const graph::Workload workload = workload_of(traces);
  EXPECT_EQ(workload.groups.size(), 3u + 4u);
  EXPECT_GT(time_of(traces), 2_us);
}

TEST(ToWorkload, involved_dim_names_dimensions_of_the_network) {
  ProtoNode inner = all_reduce(0, 1000);
  auto* dims = attribute(inner, "involved_dim")->mutable_bool_list();
  dims->add_values(true);
  dims->add_values(false);
  const TraceSet traces = traces_of({{inner}, {inner}, {inner}, {inner}});
  EXPECT_THAT(refusal(traces), HasSubstr("a network whose dimensions are known"));
  ToWorkloadOptions options;
  options.dimensions = {2, 2};
  EXPECT_EQ(workload_of(traces, options).groups.front().members.digits,
            (std::vector<graph::Digit>{{2, 1}}));
  options.dimensions = {1, 2, 2};
  EXPECT_THAT(refusal(traces, options),
              HasSubstr("rank 0: node 0 'n0': found 'involved_dim of 2 entries', expected one per "
                        "dimension of the network, 3"));
}

// ---- What cannot run.

TEST(ToWorkload, gathers_have_no_root) {
  const ProtoNode gather = collective_node(3, ChakraProtoMsg::GATHER, 8);
  EXPECT_THAT(refusal(traces_of({{gather}, {gather}})),
              HasSubstr("rank 0: node 3 'n3': found 'gather'"));
}

TEST(ToWorkload, messages_need_both_ends) {
  EXPECT_THAT(refusal(traces_of({{message(0, true, 1)}, {lasting(0, 1)}})),
              HasSubstr("1 messages of tag 7 and 8 bytes that it sends to rank 1, which receives "
                        "0"));
  EXPECT_THAT(refusal(traces_of({{message(0, true, 1, 8)}, {message(0, false, 0, 9)}})),
              HasSubstr("rank 1: node 0 'n0'"));
}

TEST(ToWorkload, ranks_that_do_not_exist_are_named) {
  TraceSet traces = traces_of({{message(4, true, 1)}, {message(0, false, 0)}});
  traces.programs[traces.program_of[0]].nodes[0].peer = 5;  // which load() would refuse
  EXPECT_THAT(refusal(traces), HasSubstr("found 'rank 5', expected a rank below 2"));
}

TEST(ToWorkload, without_ranks_there_is_nothing_to_run) {
  EXPECT_THAT(refusal(TraceSet{}), HasSubstr("no ranks"));
}

TEST(ToWorkload, a_message_to_oneself_is_refused) {
  TraceSet traces = traces_of({{message(4, true, 1)}, {message(0, false, 0)}});
  traces.programs[traces.program_of[0]].nodes[0].peer = 0;  // which load() would refuse
  EXPECT_THAT(refusal(traces), HasSubstr("rank 0: node 4 'n4': a message to its own rank"));
}

TEST(ToWorkload, members_of_a_group_must_do_the_same) {
  EXPECT_THAT(refusal(traces_of({{all_reduce(0, 8)}, {all_reduce(0, 16)}})),
              HasSubstr("do not issue the same collectives on world"));
  EXPECT_THAT(refusal(traces_of({{all_reduce(0, 8)}, {lasting(0, 16)}})),
              HasSubstr("do not issue the same collectives on world"));
}

TEST(ToWorkload, ranks_that_wait_for_each_other_are_a_deadlock) {
  const auto rank = [](std::int64_t other) {
    return std::vector<ProtoNode>{message(0, false, other), after(message(1, true, other), {0})};
  };
  const auto timeline =
      simulate::simulate(workload_of(traces_of({rank(1), rank(0)})), switch_of(2), {});
  ASSERT_FALSE(timeline.has_value());
  EXPECT_THAT(timeline.error().to_string(), HasSubstr("deadlock"));
  EXPECT_THAT(timeline.error().to_string(), HasSubstr("n0 on stream receive"));
}

TEST(ToWorkload, a_circle_of_dependencies_is_refused) {
  TraceSet traces = traces_of({{lasting(0, 1), lasting(1, 1, {0})}});
  traces.programs[0].nodes[0].dependencies = 1;  // on node 0 itself, which load() would refuse
  EXPECT_THAT(refusal(traces), HasSubstr("dependencies: found 'a circle'"));
}

}  // namespace
}  // namespace orrery::chakra
