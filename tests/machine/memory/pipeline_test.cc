// SPDX-License-Identifier: Apache-2.0
#include "machine/memory/pipeline.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <vector>

#include "fifo_server.h"

namespace orrery::memory {
namespace {

std::vector<TransferStage> three_stages() {
  // 10 GB at 10, 5 and 20 GB/s: 1 s, 2 s, 0.5 s.
  return {{"a", Bytes(10'000'000'000), Bandwidth(10e9)},
          {"b", Bytes(10'000'000'000), Bandwidth(5e9)},
          {"c", Bytes(10'000'000'000), Bandwidth(20e9)}};
}

TEST(Pipeline, OneChunkPassesStageAfterStage) {
  EXPECT_EQ(pipelined_time(three_stages(), 1), 3500_ms);
}

TEST(Pipeline, ChunksOverlapButTheSlowestStageMovesThemAll) {
  // 10 chunks: the slowest stage's 2 s, and 1/10 of the others' 1.5 s before and after it.
  EXPECT_EQ(pipelined_time(three_stages(), 10), 2150_ms);
  EXPECT_EQ(slowest(three_stages()).name, "b");
}

TEST(Pipeline, LoadsBehindComputeTakeTheLongerOfBothPerPiece) {
  // Four layers, 3 ms of loading and 5 ms of computing each: 3 + 4 x 5 instead of 4 x 8.
  const std::vector<TransferStage> load_and_compute{{"load", Bytes(12'000'000), Bandwidth(1e9)},
                                                    {"compute", Bytes(20'000'000), Bandwidth(1e9)}};
  EXPECT_EQ(pipelined_time(load_and_compute, 4), 23_ms);
  EXPECT_EQ(pipelined_time(load_and_compute, 1), 32_ms);
}

TEST(Pipeline, LocalAccessIsLatencyAndSizeOverBandwidth) {
  EXPECT_EQ(local_access(Bytes(4'096'000), Bandwidth(4096e9), 500_ns), 1500_ns);
}

/// Every chunk through every stage, each in order.
Time stepwise(const std::vector<Time>& per_chunk, std::int64_t chunks) {
  std::vector<testing::FifoServer> servers(per_chunk.size());
  Time last{0};
  for (std::int64_t c = 0; c < chunks; ++c) {
    Time at{0};
    for (std::size_t i = 0; i < per_chunk.size(); ++i) {
      at = servers[i].serve(at, per_chunk[i]);
    }
    last = at;
  }
  return last;
}

RC_GTEST_PROP(Pipeline, TheFormulaIsTheTimeOfEveryChunkThroughEveryStage, ()) {
  const auto chunks = *rc::gen::inRange<std::int64_t>(1, 50);
  const auto times = *rc::gen::nonEmpty(
      rc::gen::container<std::vector<std::int64_t>>(rc::gen::inRange<std::int64_t>(0, 1000)));
  std::vector<TransferStage> stages;
  std::vector<Time> per_chunk;
  for (const std::int64_t nanoseconds : times) {  // at 1 GB/s a byte takes 1 ns
    per_chunk.push_back(1_ns * nanoseconds);
    stages.push_back({"", Bytes(nanoseconds * chunks), Bandwidth(1e9)});
  }
  RC_ASSERT(pipelined_time(stages, chunks) == stepwise(per_chunk, chunks));
}

RC_GTEST_PROP(Pipeline, NeverBelowTheSlowestStageNeverAboveTheSum, ()) {
  const auto chunks = *rc::gen::inRange<std::int64_t>(1, 1000);
  std::vector<TransferStage> stages;
  Time sum{0};
  for (int i = 0; i < 3; ++i) {
    stages.push_back({"", Bytes(*rc::gen::inRange<std::int64_t>(0, 1 << 30)),
                      Bandwidth(*rc::gen::inRange(1, 1000) * 1e9)});
    sum += stages.back().time();
  }
  const Time time = pipelined_time(stages, chunks);
  RC_ASSERT(time >= slowest(stages).time());
  RC_ASSERT(time <= sum);
  RC_ASSERT(pipelined_time(stages, chunks + 1) <= time);
}

}  // namespace
}  // namespace orrery::memory
