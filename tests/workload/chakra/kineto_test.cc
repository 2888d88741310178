// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "traces.h"

namespace orrery::chakra {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string event(const std::string& name, int stream, double start, double duration,
                  const std::string& args = "") {
  return R"({"ph": "X", "cat": "kernel", "name": ")" + name + R"(", "pid": 0, "tid": )" +
         std::to_string(stream) + R"(, "ts": )" + std::to_string(start) + R"(, "dur": )" +
         std::to_string(duration) + R"(, "args": {"stream": )" + std::to_string(stream) + args +
         "}}";
}

std::string collective(const std::string& name, const std::string& ranks = "[0, 2]") {
  return R"(, "Collective name": ")" + name +
         R"(", "dtype": "BFloat16", "In msg nelems": 1000, "Out msg nelems": 2000, )"
         R"("Group size": 2, "Process Group Name": "3", "Process Group Ranks": ")" +
         ranks + "\"";
}

std::string trace(const std::vector<std::string>& events) {
  std::string text = R"({"schemaVersion": 1, "distributedInfo": {"rank": 0}, "traceEvents": [)"
                     R"({"ph": "M", "name": "process_name"})";
  for (const std::string& each : events) {
    text += ",\n" + each;
  }
  return text + "]}";
}

Result<TraceSet> load_trace(const std::vector<std::string>& events, std::int64_t ranks = 4) {
  const Folder folder;
  folder.write("t.0.json", trace(events));
  for (std::int64_t rank = 1; rank < ranks; ++rank) {
    folder.write("t." + std::to_string(rank) + ".json", "{}");
  }
  return load({.prefix = folder / "t", .ranks = ranks, .groups = {}, .progress = {}});
}

std::vector<std::uint32_t> dependencies(const Program& program, std::size_t node) {
  const auto first = program.dependencies.begin() + program.nodes[node].first_dependency;
  return {first, first + program.nodes[node].dependencies};
}

TEST(Kineto, kernels_are_nodes_in_order_of_their_start) {
  const auto set = load_trace({event("late", 7, 20, 3), event("early", 7, 10, 5)});
  ASSERT_TRUE(set.has_value()) << set.error().to_string();
  const Program& program = set->program(0);
  ASSERT_EQ(program.nodes.size(), 2U);
  EXPECT_EQ(program.name_of(program.nodes[0]), "early");
  EXPECT_EQ(program.nodes[0].duration, 5_us);
  EXPECT_EQ(program.nodes[0].type, NodeType::comp);
  EXPECT_THAT(dependencies(program, 1), ElementsAre(0));
}

TEST(Kineto, categories_of_older_versions_are_read) {
  std::string gemm = event("gemm", 7, 10, 50);
  std::string copy = event("Memcpy HtoD", 7, 70, 5);
  gemm.replace(gemm.find("kernel"), 6, "Kernel");
  copy.replace(copy.find("kernel"), 6, "Memcpy");
  const auto set = load_trace({gemm, copy});
  ASSERT_TRUE(set.has_value()) << set.error().to_string();
  EXPECT_EQ(set->program(0).nodes.size(), 2U);
}

TEST(Kineto, collectives_have_type_bytes_and_group) {
  // 1,000 elements of 2 bytes.
  const auto set = load_trace(
      {event("ncclDevKernel_AllGather", 20, 0, 9, collective("_allgather_base")),
       event("ncclDevKernel_SendRecv", 20, 10, 9, collective("send") + R"(, "Dst Rank": 3)")});
  ASSERT_TRUE(set.has_value()) << set.error().to_string();
  const Program& program = set->program(0);
  EXPECT_EQ(program.nodes[0].type, NodeType::comm_coll);
  EXPECT_EQ(program.nodes[0].collective, CollectiveType::all_gather);
  EXPECT_EQ(program.nodes[0].size, 2000_B);
  EXPECT_EQ(set->groups[set->group(0, program.nodes[0].group)].ranks,
            (std::vector<std::int64_t>{0, 2}));
  EXPECT_EQ(program.nodes[1].type, NodeType::comm_send);
  EXPECT_EQ(program.nodes[1].peer, 3);
}

TEST(Kineto, a_list_of_ranks_that_is_cut_follows_from_start_and_stride) {
  const std::string args = collective("allreduce", "[0, 2, ...]") +
                           R"(, "Global rank start": 0, "Global rank stride": 2)";
  const auto set = load_trace({event("ncclKernel", 20, 0, 9, args)});
  ASSERT_TRUE(set.has_value()) << set.error().to_string();
  EXPECT_EQ(set->groups[1].ranks, (std::vector<std::int64_t>{0, 2}));
}

TEST(Kineto, ranks_that_do_not_exist_are_mistakes_and_no_memory_is_taken_for_them) {
  // 9223372036854775808 = 2^63 is negative as a signed number.
  for (const char* list : {"[0, 4]", "[0, 9223372036854775808]", "[0, -1]"}) {
    EXPECT_THAT(mistakes_of(load_trace({event("nccl", 20, 0, 9, collective("allreduce", list))})),
                HasSubstr("a rank from 0 to 3"));
  }
  std::string args = collective("allreduce", "[0, 2, ...]");
  args.replace(args.find("\"Group size\": 2"), 15, "\"Group size\": 4000000000");
  EXPECT_THAT(
      mistakes_of(load_trace({event(
          "nccl", 20, 0, 9, args + R"(, "Global rank start": 0, "Global rank stride": 2)")})),
      HasSubstr("Group size: found '4000000000', expected at most"));
}

TEST(Kineto, streams_wait_for_what_had_ended_elsewhere) {
  // Stream 7: a [0, 10), c [10, 20), e [26, 30). Stream 20: b [5, 25), after nothing; f [31, 32).
  // c may not wait for b, which runs beside it; e waits for b; f for b in its stream and for e.
  const auto set = load_trace({event("a", 7, 0, 10), event("b", 20, 5, 20), event("c", 7, 10, 10),
                               event("e", 7, 26, 4), event("f", 20, 31, 1)});
  ASSERT_TRUE(set.has_value()) << set.error().to_string();
  const Program& program = set->program(0);
  EXPECT_THAT(dependencies(program, 0), ElementsAre());
  EXPECT_THAT(dependencies(program, 1), ElementsAre());
  EXPECT_THAT(dependencies(program, 2), ElementsAre(0));
  EXPECT_THAT(dependencies(program, 3), ElementsAre(1, 2));
  EXPECT_THAT(dependencies(program, 4), ElementsAre(1, 3));
}

TEST(Kineto, fractions_of_microseconds_are_carried) {
  // 1.4 us each: 1, 2, 1, 1, 2 (after five 7.0).
  std::vector<std::string> events;
  for (int i = 0; i < 5; ++i) {
    events.push_back(event("k", 7, 10 * i, 1.4));
  }
  const auto set = load_trace(events);
  ASSERT_TRUE(set.has_value());
  Time sum{0};
  for (const Node& node : set->program(0).nodes) {
    sum += node.duration;
  }
  EXPECT_EQ(sum, 7_us);
}

TEST(Kineto, events_are_read_one_by_one) {
  // A key of the same name deeper inside is another; what stands around the list is checked too.
  const std::string decoy = event("a", 7, 0, 1, R"(, "traceEvents": [{"no": "event"}])");
  const auto set = load_trace({decoy, event("b", 7, 2, 1)});
  ASSERT_TRUE(set.has_value()) << set.error().to_string();
  EXPECT_EQ(set->program(0).nodes.size(), 2U);
  const Folder folder;
  EXPECT_THAT(mistakes_of(load_bytes(folder, R"({"traceEvents": [{} {}]})", "t.json")),
              HasSubstr("a comma or ]"));
  EXPECT_THAT(mistakes_of(load_bytes(folder, "{\"traceEvents\": [{},\n{\"a\": }]}", "t.json")),
              HasSubstr("line 2"));
  EXPECT_THAT(mistakes_of(load_bytes(folder, "{\"traceEvents\": [{},\n]}", "t.json")),
              HasSubstr("line 2: found ']', expected an event after the comma"));
  EXPECT_NE(mistakes_of(load_bytes(folder, R"({"traceEvents": [{}], "a": })", "t.json")), "");
}

TEST(Kineto, one_rank_of_several_is_told_how_to_name_its_trace) {
  EXPECT_THAT(mistakes_of(load_trace({event("nccl", 7, 0, 1, collective("allreduce"))}, 1)),
              HasSubstr("PREFIX.all.json"));
}

TEST(Kineto, what_is_missing_is_named_with_what_to_run) {
  EXPECT_THAT(mistakes_of(load_trace({})), HasSubstr("ProfilerActivity.CUDA"));
  EXPECT_THAT(mistakes_of(load_trace({event("ncclKernel_AllReduce", 7, 0, 1)})),
              HasSubstr("line 2: ncclKernel_AllReduce: found 'an NCCL kernel without 'Collective "
                        "name'', expected its name, dtype"));
  EXPECT_THAT(mistakes_of(load_trace({event("nccl", 7, 0, 1, collective("allreduced"))})),
              HasSubstr("did you mean"));
  EXPECT_THAT(mistakes_of(load_trace({event("nccl", 7, 0, 1, collective("allreduce", ""))})),
              HasSubstr("Process Group Ranks"));
  EXPECT_THAT(mistakes_of(load_trace({event("nccl", 7, 0, 1, collective("recv"))})),
              HasSubstr("Src Rank"));
  const Folder folder;
  EXPECT_THAT(mistakes_of(load_bytes(
                  folder, R"({"schema": "1.1.1-chakra.0.0.4", "nodes": [{"id": 1}]})", "t.json")),
              HasSubstr("export_chrome_trace"));
}

}  // namespace
}  // namespace orrery::chakra
