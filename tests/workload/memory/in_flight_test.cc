// SPDX-License-Identifier: Apache-2.0
#include "workload/memory/in_flight.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace orrery::footprint {
namespace {

using Work = PieceSort::Work;

/// The most before a piece of this sort.
Bytes most(const InFlight& moments, const PieceSort& sort, const std::vector<GroupBytes>& groups) {
  for (std::size_t i = 0; i < moments.sorts(); ++i) {
    if (moments.sort(i) == sort) {
      return moments.most_before(i, groups);
    }
  }
  ADD_FAILURE() << "no such sort";
  return Bytes(-1);
}

TEST(InFlight, OfOneForwardOneBackward) {
  // Stage 1 of 4: two microbatches ahead, so the third forward begins beside two and every backward
  // beside three.
  const std::array<std::int64_t, 1> stage{1};
  const InFlight moments({.stages = 4, .microbatches = 8}, stage, {0}, false);
  EXPECT_EQ(moments.sorts(), 2);
  EXPECT_EQ(most(moments, {Work::forward}, {{.kept = 10_B}}), 20_B);
  EXPECT_EQ(most(moments, {Work::backward}, {{.kept = 10_B}}), 30_B);
  const std::array host{7_B};
  EXPECT_EQ(moments.most_on_host(0, host), 21_B);  // with what the third forward brings
}

TEST(InFlight, OfGpipeAllMicrobatches) {
  const std::array<std::int64_t, 1> stage{0};
  const InFlight moments(
      {.schedule = plan::Schedule::gpipe, .stages = 2, .microbatches = std::int64_t{1} << 30},
      stage, {0}, true);
  // The last forward begins beside all others, and a chunk's parameters are there once.
  const std::vector<GroupBytes> groups{{.kept = 2_B, .resident = 5_B}};
  EXPECT_EQ(most(moments, {Work::forward}, groups), Bytes((std::int64_t{2} << 30) - 2 + 5));
  EXPECT_EQ(most(moments, {Work::backward}, groups), Bytes((std::int64_t{2} << 30) + 5));
}

TEST(InFlight, ChunksOfTwoSorts) {
  // Stage 0 of 2 begins with the forwards a a b b of its two chunks, then come in turn a B, a B,
  // b A, b A: before each backward five are in flight, before the first A four of a and one of b.
  const std::array<std::int64_t, 1> stage{0};
  const InFlight moments(
      {.schedule = plan::Schedule::interleaved, .stages = 2, .chunks = 2, .microbatches = 4}, stage,
      {0, 1}, false);
  const auto with = [&](Bytes a, Bytes b, const PieceSort& sort) {
    return most(moments, sort, {{.kept = a}, {.kept = b}});
  };
  EXPECT_EQ(with(1_B, 1_B, {Work::backward, 0}), 5_B);
  EXPECT_EQ(with(1_B, 1_B, {Work::backward, 1}), 5_B);
  EXPECT_EQ(with(1_B, 0_B, {Work::backward, 0}), 4_B);
}

TEST(InFlight, OfSeveralStagesTheMost) {
  const std::array<std::int64_t, 3> stages{1, 2, 3};
  const InFlight moments({.stages = 4, .microbatches = 8}, stages, {0}, false);
  EXPECT_EQ(most(moments, {Work::backward}, {{.kept = 10_B}}), 30_B);
}

TEST(InFlight, WeightGradientsKeepWhatTheyNeed) {
  // zb-h1, last of 2 stages, two microbatches: F B, F B W, W: before the first W two wait for
  // theirs; before the second B one.
  const std::array<std::int64_t, 1> stage{1};
  const InFlight moments({.schedule = plan::Schedule::zb_h1, .stages = 2, .microbatches = 2}, stage,
                         {0}, false);
  const std::vector<GroupBytes> groups{{.kept = 100_B, .held = 1_B}};
  EXPECT_EQ(most(moments, {Work::forward}, groups), 1_B);
  EXPECT_EQ(most(moments, {Work::input_gradient}, groups), 101_B);
  EXPECT_EQ(most(moments, {Work::weight_gradient}, groups), 2_B);
}

}  // namespace
}  // namespace orrery::footprint
