// SPDX-License-Identifier: Apache-2.0
#include "calibrate/collectives.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

namespace orrery::calibrate {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Kind = graph::CollectiveKind;

/// Nodes of 8 at 300 GB/s with two protocols, any number of them at 25 GB/s per device.
machine::Machine two_protocols() {
  machine::Machine machine;
  machine.name = "bench";
  machine.network.resize(2);
  machine.network[0].name = "nvlink";
  machine.network[0].size = 8;
  machine.network[0].bandwidth = 300_GBps;
  machine.network[1].name = "infiniband";
  machine.network[1].size = 0;
  machine.network[1].bandwidth = 25_GBps;
  machine.network[0].protocols = {
      {.name = "LL", .launch = 6_us, .step_latency = 1_us, .efficiency = 0.03},
      {.name = "Simple", .launch = 20_us, .step_latency = 2_us, .efficiency = 0.8}};
  machine.network[1].protocols = {
      {.name = "Simple", .launch = 30_us, .step_latency = 8_us, .efficiency = 0.9}};
  return machine;
}

/// Returns what the machine itself would measure.
std::vector<CollectiveMeasurement> measured_on(const machine::Machine& machine) {
  std::vector<CollectiveMeasurement> measurements;
  for (const Kind kind : {Kind::all_reduce, Kind::all_gather}) {
    for (const std::int64_t members : {2, 4, 8, 16, 32}) {
      for (Bytes bytes = 1_KiB; bytes <= 1_GiB; bytes = bytes * 4) {
        CollectiveMeasurement measured{.kind = kind, .members = members, .bytes = bytes};
        measured.time =
            collective::collective_time(kind, bytes, group_of(measured, machine),
                                        collective::CollectiveAlgorithm::automatic, machine);
        measurements.push_back(measured);
      }
    }
  }
  return measurements;
}

TEST(CalibrateCollectives, TimesOfAKnownMachineGiveItsProtocolsBack) {
  const machine::Machine known = two_protocols();
  machine::Machine start = known;
  for (topology::NetworkDimension& dimension : start.network) {
    for (topology::Protocol& protocol : dimension.protocols) {
      protocol.launch = protocol.launch * 2;
      protocol.step_latency = Time(protocol.step_latency.value() * 2 / 3);
      protocol.efficiency *= 0.7;
    }
  }
  const auto fit = calibrate_collectives(start, measured_on(known), "itself");
  ASSERT_TRUE(fit) << fit.error().to_string();
  EXPECT_GT(fit->before.median, 0.2);
  EXPECT_LT(fit->after.median, 0.01);
  EXPECT_LT(fit->held_out.median, 0.02);
  for (std::size_t d = 0; d < 2; ++d) {
    for (std::size_t i = 0; i < known.network[d].protocols.size(); ++i) {
      const topology::Protocol& wanted = known.network[d].protocols[i];
      const topology::Protocol& found = fit->machine.network[d].protocols[i];
      EXPECT_EQ(found.name, wanted.name);
      EXPECT_NEAR(found.efficiency / wanted.efficiency, 1, 0.03) << d << found.name;
      EXPECT_NEAR(to_seconds(found.step_latency) / to_seconds(wanted.step_latency), 1, 0.1);
      EXPECT_NEAR(to_seconds(found.launch) / to_seconds(wanted.launch), 1, 0.15) << d << found.name;
      EXPECT_EQ(found.local_copy, 0);  // 0 in the machine stays 0
    }
  }
  EXPECT_EQ(fit->machine.origins.at("network.nvlink.protocols"), "measured: itself");
  ASSERT_EQ(fit->fits.size(), 2U);
  EXPECT_EQ(fit->fits[1].name, "network.infiniband.protocols");
}

TEST(CalibrateCollectives, NamesStayInTheOrderOfEfficiency) {
  // The search may make the slow protocol the fast one; NCCL's LL128 is still the slower.
  machine::Machine start = two_protocols();
  start.network[0].protocols[0].efficiency = 0.3;
  start.network[0].protocols[1].efficiency = 0.31;
  const auto fit = calibrate_collectives(start, measured_on(two_protocols()), "itself");
  const std::vector<topology::Protocol>& found = fit->machine.network[0].protocols;
  EXPECT_EQ(found[0].name, "LL");
  EXPECT_LT(found[0].efficiency, found[1].efficiency);
}

TEST(CalibrateCollectives, AFitIsNeverWorseOnItsPoints) {
  const machine::Machine machine = two_protocols();
  std::vector<CollectiveMeasurement> measurements = measured_on(machine);
  for (std::size_t i = 0; i < measurements.size(); ++i) {  // 30 % up and down in turn
    measurements[i].time = Time(measurements[i].time.value() * (i % 2 == 0 ? 13 : 7) / 10);
  }
  const auto fit = calibrate_collectives(machine, measurements, "noise");
  EXPECT_LE(fit->after.mean, fit->before.mean + 0.02);
}

TEST(CalibrateCollectives, SendsHaveTheirOwnProtocols) {
  // 5 us + size / 150 GB/s over a machine that believes 10 us and 240 GB/s.
  machine::Machine machine = two_protocols();
  machine.network[0].exchange = {
      {.name = "Simple", .launch = 9_us, .step_latency = 1_us, .efficiency = 0.8}};
  std::vector<CollectiveMeasurement> measurements;
  for (Bytes bytes = 1_KiB; bytes <= 1_GiB; bytes = bytes * 2) {
    measurements.push_back({.kind = Kind::send_recv,
                            .members = 2,
                            .bytes = bytes,
                            .time = 5_us + bytes / Bandwidth(150e9)});
  }
  const auto fit = calibrate_collectives(machine, measurements, "sends");
  ASSERT_TRUE(fit);
  EXPECT_LT(fit->after.largest, 0.03);
  EXPECT_NEAR(fit->machine.network[0].exchange[0].efficiency, 0.5, 0.01);
  EXPECT_EQ(fit->machine.network[0].protocols, machine.network[0].protocols);
}

TEST(CalibrateCollectives, AGroupThatTheMachineDoesNotHaveIsAMistake) {
  const std::vector<CollectiveMeasurement> measurements{
      {.members = 12, .bytes = 1_MiB, .time = 1_ms}};
  const auto wrong = calibrate_collectives(two_protocols(), measurements, "x");
  ASSERT_FALSE(wrong);
  EXPECT_THAT(wrong.error().to_string(),
              AllOf(HasSubstr("n_gpus: found '12'"), HasSubstr("nvlink 8")));
}

TEST(CalibrateCollectives, TimesBeyondTheLinksAreRefused) {
  const auto machine = machine::load_machine("dgx-h100").value();
  const auto result = calibrate_collectives(
      machine, {{.kind = Kind::all_reduce, .members = 8, .bytes = 1_GiB, .time = 1_ns}}, "x.txt");
  ASSERT_FALSE(result);
  EXPECT_THAT(result.error().to_string(),
              HasSubstr("x.txt: all_reduce of 1 GiB over 8: found '1 ns', expected at least"));
}

TEST(CalibrateCollectives, FewerPointsThanCoefficientsAreAWarning) {
  const auto machine = machine::load_machine("dgx-h100").value();
  const auto result = calibrate_collectives(
      machine, {{.kind = Kind::all_reduce, .members = 8, .bytes = 1_GiB, .time = 9_ms}}, "x.txt");
  ASSERT_TRUE(result) << result.error().to_string();
  EXPECT_EQ(result->warnings.size(), 1U);
}

TEST(CalibrateCollectives, OneMemberPerNodeLiesInTheOutermostDimension) {
  const CollectiveMeasurement spread{.members = 4, .per_node = 1, .bytes = 1_MiB};
  const CollectiveMeasurement halves{.members = 8, .per_node = 4, .bytes = 1_MiB};
  const machine::Machine machine = two_protocols();
  EXPECT_EQ(group_of(spread, machine), (std::vector<collective::Extent>{{1, 4, 1}}));
  EXPECT_EQ(group_of(halves, machine), (std::vector<collective::Extent>{{0, 4, 1}, {1, 2, 1}}));
}

constexpr const char* kOutput = R"(# nccl-tests version 2.17.6 nccl-headers=22703 nccl-library=22703
# Collective test starting: all_gather_perf
# nThread 1 nGpus 1 minBytes 1048576 maxBytes 4194304 step: 2(factor) warmup iters: 5 iters: 20
#
# Using devices
#  Rank  0 Group  0 Pid   4711 on     node1 device  0 [0000:07:00] NVIDIA H100 80GB HBM3
#  Rank  1 Group  0 Pid   4712 on     node1 device  1 [0000:0a:00] NVIDIA H100 80GB HBM3
#  Rank  2 Group  0 Pid    815 on     node2 device  0 [0000:07:00] NVIDIA H100 80GB HBM3
#  Rank  3 Group  0 Pid    816 on     node2 device  1 [0000:0a:00] NVIDIA H100 80GB HBM3
#
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
node1:4711:4720 [0] NCCL INFO Using network IB
           0             0     float    none      -1     0.21    0.00    0.00      0     0.19    0.00    0.00      0
     1048576        262144     float    none      -1    44.50   23.56   11.78      0    43.90   23.89   11.94      0
     4194304       1048576     float    none      -1    98.00   42.80   21.40      0    97.10   43.20   21.60      0
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 16.7
)";

TEST(ReadCollectives, NcclTestsTellKindRanksAndNodes) {
  const auto read = read_collectives(kOutput, "log.txt");
  ASSERT_TRUE(read) << read.error().to_string();
  ASSERT_EQ(read->size(), 2U);  // a size of 0 is no measurement
  EXPECT_EQ((*read)[0], (CollectiveMeasurement{.kind = Kind::all_gather,
                                               .members = 4,
                                               .per_node = 2,
                                               .bytes = 1_MiB,
                                               .time = 44'500_ns}));
  EXPECT_EQ((*read)[1].bytes, 4_MiB);
}

TEST(ReadCollectives, WrongResultsAreNoMeasurement) {
  std::string wrong = kOutput;
  wrong.replace(wrong.find("11.78      0"), 12, "11.78      7");
  const auto read = read_collectives(wrong, "log.txt");
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error().to_string(), HasSubstr("#wrong: found '7', expected 0"));
}

TEST(ReadCollectives, SeveralRunsInOneFile) {
  std::string second = kOutput;
  second.replace(second.find("all_gather"), 10, "alltoall");
  const auto read = read_collectives(kOutput + second, "log.txt");
  ASSERT_TRUE(read) << read.error().to_string();
  ASSERT_EQ(read->size(), 4U);
  EXPECT_EQ((*read)[3].kind, Kind::all_to_all);
  EXPECT_EQ((*read)[3].members, 4);
}

TEST(ReadCollectives, OlderOutputIsNamedByItsFile) {
  std::string old = kOutput;
  old.erase(0, old.find("# nThread"));
  EXPECT_EQ(read_collectives(old, "runs/8gpus-reduce_scatter_perf.txt")->front().kind,
            Kind::reduce_scatter);
  const auto unknown = read_collectives(old, "log.txt");
  ASSERT_FALSE(unknown);
  EXPECT_THAT(unknown.error().to_string(), HasSubstr("log.txt:13: collective: unknown"));
}

TEST(ReadCollectives, CsvColumnsAreNamedAsInPublicTables) {
  const auto read = read_collectives(
      "platform,collective,n_gpus,gpus_per_node,bytes,time_us_median\n"
      "dgx,alltoall,8,4,4096,12.5\ndgx,send_recv,2,2,1024,8\n",
      "table.csv");
  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_EQ(read->front(), (CollectiveMeasurement{.kind = Kind::all_to_all,
                                                  .members = 8,
                                                  .per_node = 4,
                                                  .bytes = 4_KiB,
                                                  .time = 12'500_ns}));
}

TEST(ReadCollectives, EveryMistakeNamesItsLine) {
  const auto wrong = read_collectives(
      "collective,n_gpus,bytes,time_us\nall_reduc,8,1024,5\nall_reduce,1,1024,-5\n", "t.csv");
  ASSERT_FALSE(wrong);
  EXPECT_THAT(
      wrong.error().to_string(),
      AllOf(HasSubstr("t.csv:2: collective: found 'all_reduc'"), HasSubstr("did you mean"),
            HasSubstr("t.csv:3: n_gpus: found '1'"), HasSubstr("t.csv:3: time_us: found '-5'")));
  EXPECT_THAT(read_collectives("collective,bytes\n", "t.csv").error().to_string(),
              AllOf(HasSubstr("column 'n_gpus' is missing"), HasSubstr("'time_us' is missing")));
  EXPECT_FALSE(read_collectives("", "t.txt"));
  EXPECT_THAT(read_collectives("collective,n_gpus,bytes,time_us,gpu_per_node\n"
                               "all_reduce,16,1024,100,8\n",
                               "t.csv")
                  .error()
                  .to_string(),
              HasSubstr("t.csv:1: gpu_per_node: unknown column (did you mean 'gpus_per_node'?)"));
}

RC_GTEST_PROP(ReadCollectivesProperty, AnyTextIsReadOrRefused, ()) {
  std::string text = *rc::gen::element(std::string(kOutput), std::string("collective,n_gpus\n"));
  const auto at = *rc::gen::inRange<std::size_t>(0, text.size());
  text.replace(at, *rc::gen::inRange<std::size_t>(0, 20), *rc::gen::arbitrary<std::string>());
  const auto read = read_collectives(text, "all_reduce_perf.txt");
  const bool told = read ? !read->empty() : !read.error().empty();
  RC_ASSERT(told);
}

}  // namespace
}  // namespace orrery::calibrate
