// SPDX-License-Identifier: Apache-2.0
#include "report/astra_memory.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace orrery::report {
namespace {

/// a (100 bytes) to 2 us, b (50 bytes) from 1 us to 5 us.
astra::LocalMemory two_tensors() {
  astra::LocalMemory memory;
  memory.rank = 3;
  memory.tensors.tensors = {{"a", Bytes(100)}, {"b", Bytes(50)}};
  memory.footprint.lifetimes = {{0_us, 2_us, true, false}, {1_us, 5_us, false, true}};
  memory.footprint.peak = Bytes(150);
  memory.footprint.peak_at = 1_us;
  return memory;
}

TEST(AstraMemoryReport, EveryRankHasTheLineOfItsClass) {
  astra::RunResult result;
  result.class_of = {0, 0};
  const std::vector<astra::LocalMemory> memory{two_tensors()};
  EXPECT_EQ(local_memory_lines(memory, result),
            "[workload] [info] sys[0] peak local memory, 150 bytes at 1000 cycles.\n"
            "[workload] [info] sys[1] peak local memory, 150 bytes at 1000 cycles.\n");
}

TEST(AstraMemoryReport, TheTraceHasASlicePerTensorAndTheBytesThatLive) {
  const auto events = nlohmann::json::parse(local_memory_trace(two_tensors()))["traceEvents"];
  ASSERT_EQ(events.size(), 6U);
  EXPECT_EQ(events[1]["name"], "b");
  EXPECT_EQ(events[1]["ph"], "X");
  EXPECT_EQ(events[1]["ts"], 1.0);
  EXPECT_EQ(events[1]["dur"], 4.0);
  EXPECT_EQ(events[1]["pid"], 3);
  EXPECT_EQ(events[1]["args"]["size"], 50);
  // 100 from 0, 150 from 1 us, 50 from 2 us, nothing from 5 us.
  EXPECT_EQ(events[2]["args"]["bytes"], 100);
  EXPECT_EQ(events[3]["args"]["bytes"], 150);
  EXPECT_EQ(events[4]["args"]["bytes"], 50);
  EXPECT_EQ(events[5]["args"]["bytes"], 0);
  EXPECT_EQ(events[5]["ts"], 5.0);
}

}  // namespace
}  // namespace orrery::report
