// SPDX-License-Identifier: Apache-2.0
/// TPI-LLM: laws of the window.
#include "serving/step/weight_window.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace orrery::step {
namespace {

/// 7B on four laptops (published): attention 11, MLP 17, all-reduce 14, loads 18 and 30 ms.
BlockTimes laptops(Time all_reduce) {
  return {.attention = 11_ms,
          .mlp = 17_ms,
          .all_reduce = all_reduce,
          .load_attention = 18_ms,
          .load_mlp = 30_ms};
}

TEST(WeightWindow, FourLaptopsWaitForTheFirstBlocksOnly) {
  // 32 (11 + 17 + 28) = 1,792 ms, and 23 of the first two loads, whatever the window from 2 on.
  EXPECT_TRUE(loose_condition(laptops(14_ms), 32));
  EXPECT_FALSE(tight_condition(laptops(14_ms)));
  for (std::int64_t blocks = 2; blocks <= 6; ++blocks) {
    const StreamedTokens token = stream_tokens({.layers = 32, .blocks = blocks}, laptops(14_ms), 3);
    EXPECT_EQ(token.first, 1815_ms) << blocks;
    EXPECT_EQ(token.stall, 23_ms) << blocks;
    EXPECT_EQ(token.next, 1792_ms) << blocks;
  }
}

TEST(WeightWindow, KeepingBlocksMakesUpForAFastNetwork) {
  // All-reduce 5 ms: stalls of one token as the MLP of every T-th layer stays (derived).
  for (const auto& [retain, stall] : {std::pair{1, 18_ms}, {2, 18_ms}, {4, 102_ms}, {8, 222_ms}}) {
    const WeightWindow window{.layers = 32, .blocks = 4, .retain = retain};
    EXPECT_EQ(stream_tokens(window, laptops(5_ms), 1).stall, stall) << retain;
  }
}

RC_GTEST_PROP(WeightWindow, ConditionsAndWindowsKeepTheirWord, ()) {
  const auto some = [] { return Time(1'000'000 * *rc::gen::inRange(0, 50)); };
  const BlockTimes times{.attention = some(),
                         .mlp = some(),
                         .all_reduce = some(),
                         .load_attention = some(),
                         .load_mlp = some()};
  const WeightWindow window{.layers = *rc::gen::inRange(1, 12), .blocks = *rc::gen::inRange(2, 9)};
  const StreamedTokens run = stream_tokens(window, times, 4);
  const Time work = window.layers * (times.attention + times.mlp + 2 * times.all_reduce);
  const Time loads = window.layers * (times.load_attention + times.load_mlp);
  RC_ASSERT(run.next + 1_ps >= work);
  RC_ASSERT(run.first >= work);
  if (window.blocks < 2 * window.layers) {
    RC_ASSERT(run.first + run.next * 3 >= loads * 4 - loads);
    WeightWindow wider = window;
    ++wider.blocks;
    RC_ASSERT(stream_tokens(wider, times, 4).next <= run.next);
  }
  if (tight_condition(times)) {
    RC_ASSERT(run.next == work);
    RC_ASSERT(times.attention + times.mlp + 2 * times.all_reduce >=
              times.load_attention + times.load_mlp);
  }
}

RC_GTEST_PROP(WeightWindow, DevicesWaitForTheSlowestAndNoLonger, ()) {
  const auto some = [] { return Time(1'000'000 * *rc::gen::inRange(0, 50)); };
  const Time all_reduce = some();
  std::vector<BlockTimes> devices;
  BlockTimes most{.all_reduce = all_reduce};
  const WeightWindow window{.layers = *rc::gen::inRange(1, 8),
                            .blocks = *rc::gen::inRange(1, 6),
                            .retain = *rc::gen::inRange(0, 4)};
  Time slowest{0};
  for (int i = *rc::gen::inRange(1, 5); i > 0; --i) {
    devices.push_back({some(), some(), all_reduce, some(), some()});
    const BlockTimes& one = devices.back();
    most.attention = std::max(most.attention, one.attention);
    most.mlp = std::max(most.mlp, one.mlp);
    most.load_attention = std::max(most.load_attention, one.load_attention);
    most.load_mlp = std::max(most.load_mlp, one.load_mlp);
    slowest = std::max(slowest, stream_tokens(window, one, 3).first);
  }
  const Time together = stream_tokens(window, devices, 3).first;
  RC_ASSERT(together >= slowest);
  RC_ASSERT(together <= stream_tokens(window, most, 3).first);
}

}  // namespace
}  // namespace orrery::step
