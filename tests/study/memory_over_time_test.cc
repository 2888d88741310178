// SPDX-License-Identifier: Apache-2.0
#include "study/memory_over_time.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "study/run.h"

namespace orrery::study {
namespace {

study::Run recorded_run_of(const plan::Plan& plan) {
  auto run =
      run_step(zoo::load_model("llama-3-8b").value(), machine::load_machine("dgx-h100").value(),
               plan, 0, {.allow_oom = true, .record_spans = true});
  EXPECT_TRUE(run) << run.error().to_string();
  return std::move(*run);
}

Bytes most(const std::vector<MemorySample>& samples) {
  Bytes bytes{0};
  for (const MemorySample& sample : samples) {
    bytes = std::max(bytes, sample.bytes.total());
  }
  return bytes;
}

TEST(MemoryOverTime, OfOneStreamIsTheFootprintsAtItsFullest) {
  // Everything runs on the compute stream, one block after the other, as the footprint has it.
  plan::Plan plan;
  plan.global_batch = 4;
  plan.sequence = 4096;
  plan.recompute = plan::Recompute::full;
  const study::Run run = recorded_run_of(plan);
  const auto samples = MemoryOverTime(run.workload, run.timeline).of(0);
  ASSERT_FALSE(samples.empty());
  EXPECT_EQ(most(samples), run.memory[0].total());
  EXPECT_EQ(samples.front().at, Time(0));
  EXPECT_EQ(samples.back().bytes, graph::state_of(run.workload.role(0)));
  EXPECT_LE(samples.back().at, run.timeline.step_time);
  EXPECT_TRUE(std::is_sorted(samples.begin(), samples.end(),
                             [](const auto& a, const auto& b) { return a.at < b.at; }));
}

TEST(MemoryOverTime, StagesKeepTheMicrobatchesThatAreInFlight) {
  plan::Plan plan;
  plan.pp = 4;
  plan.tp = 2;
  plan.global_batch = 16;
  plan.sequence = 4096;
  const study::Run run = recorded_run_of(plan);
  const MemoryOverTime over_time(run.workload, run.timeline);
  for (const std::int64_t rank : run.timeline.ranks) {
    const auto stage = static_cast<std::size_t>(run.workload.role_of(rank));
    const auto samples = over_time.of(rank);
    EXPECT_EQ(most(samples), run.memory[stage].total());
    for (const MemorySample& sample : samples) {
      for (const Bytes part : sample.bytes.bytes) {
        EXPECT_GE(part, Bytes(0));
      }
    }
  }
}

}  // namespace
}  // namespace orrery::study
