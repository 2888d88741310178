// SPDX-License-Identifier: Apache-2.0
#include "collective/tiles/pipeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collective/tile_ring.h"

namespace orrery::tiles {
namespace {

Problem small() {
  return {.ranks = 3,
          .rows = 24,
          .columns = 20,
          .inner = 16,
          .tiles = 2,
          .bandwidth = Bandwidth(0),
          .repeat = 2};
}

TEST(Tiles, AddUpToTheSumOfOneThreadBitForBit) {
  for (const std::int64_t ranks : {2, 3, 4}) {
    for (const Bandwidth bandwidth : {Bandwidth(0), Bandwidth(20e6)}) {
      Problem problem = small();
      problem.ranks = ranks;
      problem.bandwidth = bandwidth;
      const auto outcome = run(problem);
      ASSERT_TRUE(outcome) << outcome.error().to_string();
      EXPECT_TRUE(outcome->equal) << ranks << " ranks";
    }
  }
}

TEST(Tiles, CountStoresAndArrivals) {
  // 3 ranks, 6 tiles each: 18 stores, and 2 tiles arrive on each rank in each of 2 ring steps: 12.
  // A full counter sends every tile on but those of the rank's own chunk: 18 - 6.
  const auto outcome = run(small());
  ASSERT_TRUE(outcome) << outcome.error().to_string();
  EXPECT_EQ(outcome->updates, 18 + 12);
  EXPECT_EQ(outcome->triggered, 12);
}

TEST(Tiles, RecurrenceOfOneTileAChunkIsThatOfTheSimulator) {
  for (const double hop : {1e-5, 2e-4, 3e-3}) {
    const Time simulated =
        collective::overlapped_time({.product = 1_ms, .hop = from_seconds(hop), .ranks = 8});
    EXPECT_NEAR(recurrence(1e-3, hop, 8, 1), to_seconds(simulated), 1e-11);
  }
}

TEST(Tiles, SmallerTilesExposeLessBeforeTheRing) {
  // A product of 8 in 4 chunks of 2 tiles, a link of 4 a chunk, 2 a tile: the first tile is made at
  // 1, and the link is never idle after: 1 + 3 x 4. Whole chunks: 2 + 3 x 4.
  EXPECT_DOUBLE_EQ(recurrence(8, 4, 4, 2), 13);
  EXPECT_DOUBLE_EQ(recurrence(8, 4, 4, 1), 14);
}

TEST(Tiles, TakeWhatTheyTakeOnALinkThatIsSlow) {
  // Two ranks, a chunk of 8 KB at 1 MB/s: 8 ms to the next rank and 8 ms to gather, with or without
  // overlap; whatever else the machine does comes on top.
  Problem problem{.ranks = 2, .rows = 64, .columns = 64, .inner = 8, .tiles = 1, .repeat = 1};
  problem.bandwidth = Bandwidth(1'024'000);
  const auto outcome = run(problem);
  ASSERT_TRUE(outcome) << outcome.error().to_string();
  for (const Measured& one : {outcome->unfused, outcome->overlapped}) {
    EXPECT_GE(one.reduced_s, 0.008);
    EXPECT_GE(one.gathered_s, 0.016);
  }
  EXPECT_GE(outcome->hop_s, 0.008);
}

TEST(Tiles, RefuseByFieldWhatCannotRun) {
  const auto message = [](const Problem& problem) {
    const auto outcome = run(problem);
    return outcome ? std::string() : outcome.error().to_string();
  };
  Problem problem = small();
  problem.rows = 25;
  EXPECT_THAT(message(problem), ::testing::HasSubstr("a multiple of ranks x tiles = 6"));
  problem = {.ranks = 1, .rows = 0, .tiles = -1};
  EXPECT_THAT(message(problem), ::testing::HasSubstr("a whole number from 2 to 16"));
  EXPECT_THAT(message(problem), ::testing::HasSubstr("rows"));
  EXPECT_THAT(message(problem), ::testing::HasSubstr("tiles"));
  problem = small();
  problem.bandwidth = Bandwidth(-1);
  EXPECT_THAT(message(problem), ::testing::HasSubstr("a rate of 0 or more"));
}

}  // namespace
}  // namespace orrery::tiles
