// SPDX-License-Identifier: Apache-2.0
#include "emit/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../simulate/builder.h"
#include "emit/listing.h"
#include "emit/write.h"
#include "simulate/simulate.h"

namespace orrery::emit {
namespace {

using namespace orrery::testing;  // NOLINT(google-build-using-namespace): the builders of this test
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Emitted {
  Program program;
  std::string order;
};

Emitted emitted(const graph::Workload& workload, std::int64_t shrink = 1) {
  const auto timeline = simulate::simulate(
      workload, machine_of({dimension(topology::DimensionKind::switched, workload.ranks)}),
      {.fold = false, .record_spans = true, .shortcuts = false});
  EXPECT_TRUE(timeline.has_value());
  auto program = program_of(workload, *timeline, shrink);
  EXPECT_TRUE(program.has_value());
  return {std::move(*program), simulated_order(workload, *timeline, shrink)};
}

std::vector<std::string> names_of_calls(const std::vector<Call>& list) {
  std::vector<std::string> names;
  for (const Call& call : list) {
    names.push_back(call.name);
  }
  return names;
}

const plan::RankLayout kPair{{{plan::Axis::tp, 2}, {plan::Axis::dp, 1}, {plan::Axis::pp, 1}}};
const plan::RankLayout kStages{{{plan::Axis::tp, 1}, {plan::Axis::dp, 1}, {plan::Axis::pp, 2}}};

// A kernel, an all-reduce that waits for it, a kernel that does not, one that waits for both: the
// all-reduce is started before the second kernel and is over before the third. 8000 bytes are 1000
// elements.
TEST(Program, WaitsStandWhereTheSimulationWaited) {
  const Emitted made = emitted(workload_of(
      kPair, {{compute_node("a", 1_ms), collective_node("sum", plan::Axis::tp, Bytes(8000), {0}),
               compute_node("b", 2_ms), compute_node("c", 1_ms, {1, 2})}}));
  ASSERT_EQ(made.program.lists.size(), 1U);
  const std::vector<Call>& list = made.program.lists[0];
  ASSERT_EQ(list.size(), 4U);
  EXPECT_EQ(list.front().name, "a");
  EXPECT_EQ(list.back().name, "c");
  const auto sum = std::ranges::find(list, "sum", &Call::name);
  EXPECT_EQ(sum->elements, 1000);
  EXPECT_THAT(sum->waits, IsEmpty());
  EXPECT_THAT(std::ranges::find(list, "b", &Call::name)->waits, IsEmpty());
  EXPECT_THAT(list.back().waits, ElementsAre(sum - list.begin()));
  EXPECT_EQ(made.order, "0 all_reduce tp 1000\n1 all_reduce tp 1000\n");
}

// What is gathered counts by the gathered buffer: 8000 bytes of two ranks are shards of 500.
TEST(Program, ShardsAreAMembersPart) {
  graph::Node gather = collective_node("gather", plan::Axis::tp, Bytes(8000));
  gather.collective = graph::CollectiveKind::all_gather;
  const Emitted made = emitted(workload_of(kPair, {{gather}}));
  EXPECT_EQ(made.program.lists[0][0].elements, 500);
  EXPECT_EQ(made.order, "0 all_gather tp 500\n1 all_gather tp 500\n");
}

// A stage sends to the next; the kernel behind the receive waits for it. Lists differ by stage.
TEST(Program, AMessageIsSentByOneAndWaitedForByTheOther) {
  const Emitted made = emitted(workload_of(
      kStages, {{compute_node("a", 1_ms), send("out", plan::Channel::forward, Bytes(800), {0})},
                {receive("in", plan::Channel::forward), compute_node("b", 1_ms, {0})}}));
  ASSERT_EQ(made.program.lists.size(), 2U);
  EXPECT_THAT(names_of_calls(made.program.lists[0]), ElementsAre("a", "out"));
  EXPECT_THAT(names_of_calls(made.program.lists[1]), ElementsAre("in", "b"));
  EXPECT_EQ(made.program.lists[0][1].peer, 1);
  EXPECT_EQ(made.program.lists[1][0].peer, -1);
  EXPECT_EQ(made.program.lists[0][1].tag, made.program.lists[1][0].tag);
  EXPECT_THAT(made.program.lists[1][1].waits, ElementsAre(0));
  EXPECT_EQ(made.order, "0 send 1 100\n1 receive 0 100\n");
}

// A communicator of one moves nothing.
TEST(Program, AloneNobodyCalls) {
  const Emitted made =
      emitted(workload_of(kStages, {{collective_node("sum", plan::Axis::tp, Bytes(8000))},
                                    {collective_node("sum", plan::Axis::tp, Bytes(8000))}}));
  EXPECT_THAT(made.program.lists[0], IsEmpty());
  EXPECT_EQ(made.order, "");
}

// 64 x 32 x 100 by 50 is 1 x 1 x 2; 8000 bytes are 1000 / 50 = 20 elements, 8 bytes at least one.
TEST(Program, ShrinkingDividesEveryDimensionToNoLessThanOne) {
  graph::Node product = compute_node("product", 1_ms);
  product.operators[0].kind = graph::OperatorKind::gemm;
  product.operators[0].gemm = {.batch = 1, .m = 64, .n = 32, .k = 100};
  const graph::Workload workload =
      workload_of(kPair, {{product, collective_node("sum", plan::Axis::tp, Bytes(8000), {0}),
                           collective_node("flag", plan::Axis::tp, Bytes(8), {1})}});
  const Emitted made = emitted(workload, 50);
  const std::vector<Call>& list = made.program.lists[0];
  EXPECT_EQ(list[0].works[0].gemm, (graph::GemmShape{.batch = 1, .m = 1, .n = 1, .k = 2}));
  EXPECT_EQ(list[1].elements, 20);
  EXPECT_EQ(list[2].elements, 1);
  EXPECT_EQ(names_of_calls(list), names_of_calls(emitted(workload).program.lists[0]));
}

// What the program executes, shrunk by 4: 16 x 8 x 4 in fp32; a kernel of 1 ms is a loop of 250 us;
// 8000 bytes of a shard and its neighbour's are 125 elements each, 2000 bytes.
TEST(Executed, HasTheSizesOfTheProgram) {
  graph::Node product = compute_node("product", 1_ms);
  product.operators[0].kind = graph::OperatorKind::gemm;
  product.operators[0].gemm = {.batch = 1, .m = 64, .n = 32, .k = 16};
  graph::Node gather = collective_node("gather", plan::Axis::tp, Bytes(8000), {1});
  gather.collective = graph::CollectiveKind::all_gather;
  graph::Node loop = compute_node("loop", 1_ms, {0});
  loop.operators[0].duration = 1_ms;
  const graph::Workload workload = workload_of(kPair, {{product, loop, gather}});
  const graph::Workload made = executed(workload, 4);
  const std::vector<graph::Node>& nodes = made.programs[0].templates[0].nodes;
  EXPECT_EQ(nodes[0].operators[0].gemm, (graph::GemmShape{.batch = 1, .m = 16, .n = 8, .k = 4}));
  EXPECT_EQ(nodes[0].operators[0].type, graph::DataType::fp32);
  EXPECT_EQ(nodes[0].operators[0].duration, Time(0));
  EXPECT_EQ(nodes[1].operators[0].duration, 250_us);
  EXPECT_EQ(nodes[2].bytes, Bytes(2000));
  EXPECT_EQ(emitted(workload, 4).program, emitted(made).program);
}

// An all-reduce of 2 MB over 1 GB/s, 2 ms, beside a kernel of 2 ms after one of 1 ms: 3 ms; a rank
// of one thread does one after the other, 5 ms.
TEST(Executed, AThreadMovesNothingWhileItComputes) {
  const graph::Workload beside = workload_of(
      kPair,
      {{compute_node("a", 1_ms), collective_node("sum", plan::Axis::tp, Bytes(2'000'000), {0}),
        compute_node("b", 2_ms, {0})}});
  const auto step = [](const graph::Workload& workload) {
    const auto timeline = simulate::simulate(
        workload, machine_of({dimension(topology::DimensionKind::switched, 2)}), {});
    return to_seconds(timeline.value().step_time);
  };
  EXPECT_NEAR(step(beside), 3e-3, 20e-6);
  EXPECT_NEAR(step(on_one_thread(beside)), 5e-3, 20e-6);
}

TEST(Write, AFolderHasWhatItNeeds) {
  const Emitted made = emitted(workload_of(kPair, {{compute_node("a \"b\\", 1_ms)}}));
  const std::vector<File> files = files_of(made.program, {"title", "command", "machine", ""});
  std::vector<std::string> names;
  for (const File& file : files) {
    names.push_back(file.name);
  }
  EXPECT_THAT(names,
              ElementsAre("plan.cc", "plan.h", "main.cc", "trace.h", "trace.cc", "work.h",
                          "exchange.h", "measure.h", "arguments.h", "telemetry.h", "probe.h",
                          "listing.c", "order.txt", "CMakeLists.txt", "job.sh", "README.md"));
  EXPECT_THAT(files[0].text, HasSubstr("\"a _b_\""));
  EXPECT_THAT(files[2].text, HasSubstr("#include \"plan.h\""));
}

TEST(Write, AFolderThatCannotBeMadeIsAMistake) {
  const auto written = write_files({{"plan.cc", ""}}, "/dev/null/folder");
  ASSERT_FALSE(written.has_value());
  EXPECT_THAT(written.error().to_string(), HasSubstr("/dev/null/folder/plan.cc"));
}

// The listing of the first test's step: its all-reduce is call 1 and the first exchange of group 0
// (key 0); it is awaited, and its 1000 elements compared, before kernel c.
TEST(Listing, HasACallALineInTheOrderOfTheSimulation) {
  const Emitted made = emitted(workload_of(
      kPair, {{compute_node("a", 1_ms), collective_node("sum", plan::Axis::tp, Bytes(8000), {0}),
               compute_node("b", 2_ms), compute_node("c", 1_ms, {1, 2})}}));
  const std::string text = listing_of(made.program, "a step");
  EXPECT_THAT(text, HasSubstr("/* a step\n"));
  EXPECT_THAT(text,
              HasSubstr("  /* 0 a */\n  stream(1000000);\n"
                        "  prepare(1, 1000, 1000, 0, place[0]);\n"
                        "  MPI_Iallreduce(out[1], in[1], 1000, MPI_UINT64_T, MPI_SUM, group[0], "
                        "request[1]);\n"
                        "  /* 2 b */\n  stream(2000000);\n"
                        "  MPI_Waitall(2, request[1], MPI_STATUSES_IGNORE);\n"
                        "  added(1, 1000, 0, size[0], 0);\n"
                        "  /* 3 c */\n  stream(1000000);\n}\n"));
}

}  // namespace
}  // namespace orrery::emit
