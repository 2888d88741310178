// SPDX-License-Identifier: Apache-2.0
#include "serving/step/residual_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace orrery::step {
namespace {

using testing::ElementsAre;
using testing::Field;

StreamPrices ring_prices() {
  return {.all_reduce = 100_us,
          .reduce_scatter = 50_us,
          .all_gather = 50_us,
          .send_rows = 80_us,
          .send_shard = 10_us};
}

/// Two layers of attention and MLP over 8 ranks.
StreamUses two_layers() {
  return {.tokens = 4096, .tp = 8, .hops = 0, .readers = 4, .norms = 0_us};
}

TEST(ResidualStream, SlicesGainWhatNormsAreShorter) {
  // Five sums of 100 us are five halves, four gathers and one more at the end: nothing is gained
  // but the norms.
  StreamUses uses = two_layers();
  EXPECT_EQ(choose_stream(uses, ring_prices()).saved, Time(0));
  uses.norms = 28_us;
  const StreamChoice choice = choose_stream(uses, ring_prices());
  EXPECT_TRUE(choice.shards);
  EXPECT_EQ(choice.saved, 28_us);
  EXPECT_EQ(choice.kernels, 5);
  ASSERT_EQ(choice.places.size(), 1U);
  EXPECT_EQ(choice.places[0].pair, "tp+sp");
  EXPECT_EQ(choice.places[0].places, 4);
  EXPECT_EQ(choice.places[0].before, "all_reduce tp");
  EXPECT_EQ(choice.places[0].after, "reduce_scatter tp, all_gather tp");
  EXPECT_EQ(choice.places[0].reason, "");
}

TEST(ResidualStream, HalvesThatCostMoreKeepTheStreamWhole) {
  // Halves of 51 us: five sums lose 2 us each; norms of 8 us do not make up for it.
  StreamUses uses = two_layers();
  uses.norms = 8_us;
  StreamPrices prices = ring_prices();
  prices.reduce_scatter = prices.all_gather = 51_us;
  const StreamChoice choice = choose_stream(uses, prices);
  EXPECT_FALSE(choice.shards);
  EXPECT_EQ(choice.saved, Time(0));
  EXPECT_EQ(choice.kernels, 0);
  ASSERT_EQ(choice.places.size(), 1U);
  EXPECT_EQ(choice.places[0].reason, "not faster");
}

TEST(ResidualStream, StagesAloneSendSlicesWhereNormsGainNothing) {
  // 100 + 80 us become 51 + 10 + 51: 68 us a hop; the other sums would lose 2 us each.
  StreamUses uses = two_layers();
  uses.hops = 1;
  StreamPrices prices = ring_prices();
  prices.reduce_scatter = prices.all_gather = 51_us;
  const StreamChoice choice = choose_stream(uses, prices);
  EXPECT_FALSE(choice.shards);
  EXPECT_EQ(choice.saved, 68_us);
  EXPECT_EQ(choice.kernels, 1);
  EXPECT_THAT(choice.places,
              ElementsAre(Field(&FusedPlace::pair, "tp+pp"), Field(&FusedPlace::pair, "tp+sp")));
  EXPECT_EQ(choice.places[0].after, "reduce_scatter tp, send_recv pp, all_gather tp");
  EXPECT_EQ(choice.places[1].reason, "not faster");
}

TEST(ResidualStream, SlicesLeaveForTheirExpertsUngathered) {
  // Embedding and attention are summed, 200 us, and what experts send back is gathered, 50. In
  // shards both sums are halves, 100, attention's input and the head's are gathered, 100.
  StreamUses uses{.tokens = 4096, .tp = 8, .readers = 1, .sharded = 1};
  const StreamChoice choice = choose_stream(uses, ring_prices());
  EXPECT_EQ(choice.saved, 50_us);
  ASSERT_EQ(choice.places.size(), 2U);
  EXPECT_EQ(choice.places[0].pair, "tp+ep");
  EXPECT_EQ(choice.places[0].after, "reduce_scatter tp");
  EXPECT_EQ(choice.places[0].time_before - choice.places[0].time_after, 50_us);
}

TEST(ResidualStream, HalvesArePricedAtLeastHalfASum) {
  // A machine's own halves of 10 us each beside an engine's all_reduce of 100: no fusion.
  StreamPrices prices = ring_prices();
  prices.reduce_scatter = prices.all_gather = 10_us;
  EXPECT_EQ(choose_stream(two_layers(), prices).saved, Time(0));
}

RC_GTEST_PROP(ResidualStream, SavesWhatItsPlacesAndNormsAddUpTo, ()) {
  const auto time = [](int most) { return Time(*rc::gen::inRange(0, most) * 1'000'000LL); };
  const auto number = [](int from, int to) {
    return static_cast<std::int64_t>(*rc::gen::inRange(from, to));
  };
  const StreamPrices prices{.all_reduce = time(100),
                            .reduce_scatter = time(100),
                            .all_gather = time(100),
                            .send_rows = time(100),
                            .send_shard = time(100)};
  const std::int64_t branches = number(1, 8);
  const StreamUses uses{.tokens = number(1, 100),
                        .tp = number(2, 9),
                        .hops = number(0, static_cast<int>(branches)),
                        .readers = branches,
                        .norms = time(100)};
  const StreamChoice choice = choose_stream(uses, prices);
  RC_ASSERT(choice.saved >= Time(0));
  // All branches but the hops' are summed where they are read; the last sum is gathered too.
  Time sum = choice.shards ? uses.norms : Time(0);
  Time of_one{0};
  for (const FusedPlace& one : choice.places) {
    if (one.reason.empty()) {
      sum += one.places * (one.time_before - one.time_after);
    }
    of_one = one.pair == "tp+sp" ? one.time_before - one.time_after : of_one;
  }
  if (choice.shards && uses.readers > uses.hops) {
    RC_ASSERT(choice.saved == sum + of_one);
  } else if (!choice.shards) {
    RC_ASSERT(choice.saved == sum);
  }
}

}  // namespace
}  // namespace orrery::step
