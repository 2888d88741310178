// SPDX-License-Identifier: Apache-2.0
#include "calibrate/replay.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../simulate/builder.h"

namespace orrery::calibrate {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr const char* kHeader = "what,members,batch,m,n,k,bytes,count,seconds\n";

Result<ReplayTable> table_of(const std::string& rows) {
  return parse_csv(kHeader + rows, "measured.csv").and_then(read_replay);
}

TEST(Replay, EachRowIsItsSort) {
  const auto table = table_of(
                         "step,2,0,0,0,0,0,1,0.5\ngemm,1,2,3,4,5,0,3,0.1\n"
                         "stream,1,0,0,0,0,64,4,0.2\nall_gather,2,0,0,0,0,4096,2,0.3\n"
                         "message,2,0,0,0,0,8,1,0.4\n")
                         .value();
  EXPECT_EQ(table.step, 500_ms);
  EXPECT_EQ(table.products.at("fp32")[0].shape, (graph::GemmShape{2, 3, 4, 5}));
  EXPECT_EQ(table.products.at("fp32")[0].of_step, 300_ms);  // 3 of 0.1 s
  EXPECT_EQ(table.streams[0].kernels[0].bytes, Bytes(64));
  EXPECT_EQ(table.streams[0].of_step, 800_ms);
  EXPECT_EQ(table.collectives[0].kind, graph::CollectiveKind::all_gather);
  EXPECT_EQ(table.collectives[0].members, 2);
  EXPECT_EQ(table.counts[0], 2);
  EXPECT_EQ(table.messages[0].time, 400_ms);
}

TEST(Replay, EveryBadRowIsNamed) {
  EXPECT_THAT(table_of("step,2,0,0,0,0,0,1,-1\nsteps,2,0,0,0,0,x,1,1\n").error().to_string(),
              AllOf(HasSubstr("measured.csv:2"), HasSubstr("'-1'"), HasSubstr("measured.csv:3"),
                    HasSubstr("'x'"), HasSubstr("'steps'")));
  EXPECT_THAT(table_of("gemm,1,2,3,4,5,0,1,0.1\n").error().to_string(), HasSubstr("a row 'step'"));
  EXPECT_THAT(
      parse_csv("what,seconds\nstep,1\n", "f").and_then(read_replay).error().to_string(),
      AllOf(HasSubstr("column 'bytes' is missing"), HasSubstr("column 'members' is missing")));
}

/// One rank that computes the first product and the first stream.
graph::Workload step_of(const ReplayTable& table) {
  graph::Node node = testing::compute_node("work", 1_ms);
  node.operators = {gemm_operator("fp32", table.products.at("fp32")[0].shape),
                    table.streams[0].kernels[0]};
  return testing::workload_of({{{plan::Axis::tp, 1}, {plan::Axis::dp, 1}, {plan::Axis::pp, 1}}},
                              {{node}});
}

// Streams of a machine that moves 5 of its 200 GB/s after 1 us: bytes / 5 GB/s + 1 us. Messages of
// 2 us and 2.5 GB/s, a tenth of the link's: 0.5 us of the link's latency and 1.5 us of software.
TEST(Replay, CoefficientsThatMadeATableAreFoundAgain) {
  const machine::Machine machine = machine::load_machine("localhost").value();
  std::string rows = "step,1,0,0,0,0,0,1,1\ngemm,1,1,256,256,256,0,1,0.001\n";
  for (std::int64_t bytes = 1 << 12; bytes <= 1 << 26; bytes *= 4) {
    const auto size = static_cast<double>(bytes);
    rows += fmt::format("stream,1,0,0,0,0,{},1,{}\n", bytes, size / 5e9 + 1e-6);
    rows += fmt::format("message,2,0,0,0,0,{},1,{}\n", bytes, size / 2.5e9 + 2e-6);
  }
  const ReplayTable table = table_of(rows).value();
  const auto fit = calibrate_replay(machine, step_of(table), table, "test").value();
  EXPECT_NEAR(fit.machine.device.kernels.elementwise_share, 0.025, 0.00125);
  EXPECT_NEAR(fit.machine.network[0].send_efficiency, 0.1, 0.005);
  EXPECT_NEAR(to_seconds(fit.machine.network[0].message_overhead), 1.5e-6, 0.2e-6);
  EXPECT_EQ(fit.measured, 1_s);
  // The step is a product of 1 ms and 4 KiB in 1.8 us; at 250 GFLOP/s it would take a seventh.
  EXPECT_LT(fit.before, 500_us);
  EXPECT_NEAR(to_seconds(fit.after), 0.001, 0.0001);
  EXPECT_THAT(fit.warnings[0], HasSubstr("no product reaches 0.3 of the peak"));
}

// A machine has one price for sums that leave shards and gathers of shards: 140 us and 100 us are
// 120 us each, and a step of one of each takes what both took.
TEST(Replay, ASumAndAGatherOfOneSizeTakeTheirMeanEach) {
  const machine::Machine machine = machine::load_machine("localhost").value();
  const ReplayTable table = table_of(
                                "step,2,0,0,0,0,0,1,240e-6\n"
                                "reduce_scatter,2,0,0,0,0,196608,2,140e-6\n"
                                "all_gather,2,0,0,0,0,196608,2,100e-6\n")
                                .value();
  graph::Node sum = testing::collective_node("sum", plan::Axis::tp, Bytes(196608));
  sum.collective = graph::CollectiveKind::reduce_scatter;
  graph::Node gather = sum;
  gather.collective = graph::CollectiveKind::all_gather;
  gather.after = {0};
  const graph::Workload step = testing::workload_of(
      {{{plan::Axis::tp, 2}, {plan::Axis::dp, 1}, {plan::Axis::pp, 1}}}, {{sum, gather}});
  const auto fit = calibrate_replay(machine, step, table, "test").value();
  EXPECT_NEAR(to_seconds(fit.after), 240e-6, 5e-6);
  EXPECT_NEAR(fit.classes[0].after, 0.17, 0.04);  // of both rows, 14 and 20 % off
}

}  // namespace
}  // namespace orrery::calibrate
