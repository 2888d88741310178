// SPDX-License-Identifier: Apache-2.0
#include "collective/tile_ring.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace orrery::collective {
namespace {

TEST(TileRing, HidesHopsBehindALongerProduct) {
  // Four ranks: pieces end at 10, 20, 30, 40 us; hops of 5 us end at 15, 25, 35: the last piece is
  // later.
  EXPECT_EQ(overlapped_time({.product = 40_us, .hop = 5_us, .ranks = 4}), 40_us);
}

TEST(TileRing, ExposesAPieceBeforeALongerRing) {
  // Pieces of 10 us, hops of 20 us: 10 + 3 x 20. Were the ring not to wait for the first: 60.
  EXPECT_EQ(overlapped_time({.product = 40_us, .hop = 20_us, .ranks = 4}), 70_us);
}

TEST(TileRing, ExposesTheLastHopAtTheEdge) {
  // Two ranks, a product of 20 us: its half, and a hop of 12 us after it, 2 us beyond the product.
  EXPECT_EQ(overlapped_time({.product = 20_us, .hop = 12_us, .ranks = 2}), 22_us);
}

TEST(TileRing, SlowsPiecesWhileAHopIsInFlight) {
  // The second piece, 10 us, begins with a hop of 6 us, in which it does 3 us of its work.
  EXPECT_EQ(overlapped_time({.product = 20_us, .hop = 6_us, .ranks = 2, .slowed = 2}), 23_us);
  // A hop of 30 us covers it: 20 us for 10, and the hop ends at 40.
  EXPECT_EQ(overlapped_time({.product = 20_us, .hop = 30_us, .ranks = 2, .slowed = 2}), 40_us);
}

TEST(TileRing, IsNeverBelowTheProductNorAPieceAndTheRing) {
  for (const std::int64_t ranks : {2, 3, 8, 32}) {
    for (const Time product : {7_us, 1_ms, 40_ms}) {
      for (const Time hop : {1_us, 30_us, 1_ms}) {
        const Time least = std::max(product, product / ranks + hop * (ranks - 1));
        EXPECT_GE(overlapped_time({.product = product, .hop = hop, .ranks = ranks}) + Time(1),
                  least);
        EXPECT_LE(overlapped_time({.product = product, .hop = hop, .ranks = ranks}),
                  product + hop * (ranks - 1));
      }
    }
  }
}

}  // namespace
}  // namespace orrery::collective
