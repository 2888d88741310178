// SPDX-License-Identifier: Apache-2.0
#include "planner/advice/division.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "../task.h"

namespace orrery::advice {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

TEST(Division, ModelsThatScaleEvenlyEndTogether) {
  // Works of 3 and 1 that take work / nodes: of 8 nodes 6 and 2 take 0.5 each. Of 16 nodes works of
  // 4, 2 and 2 have 8, 4 and 4.
  const std::vector<double> two{3, 1};
  const auto score = [&](std::size_t model, std::int64_t nodes) {
    return two[model] / static_cast<double>(nodes);
  };
  EXPECT_EQ(divide(2, 8, Together::longest, score), (std::vector<std::int64_t>{6, 2}));
  const std::vector<double> three{4, 2, 2};
  EXPECT_EQ(divide(3, 16, Together::longest,
                   [&](std::size_t model, std::int64_t nodes) {
                     return three[model] / static_cast<double>(nodes);
                   }),
            (std::vector<std::int64_t>{8, 4, 4}));
}

TEST(Division, SumsAreLeastWhereEachModelIsCheapest) {
  // The first costs 1 on 2 nodes and 5 on others, the second 10 less a node: 6 of 8 nodes are left.
  const auto score = [](std::size_t model, std::int64_t nodes) {
    return model == 0 ? (nodes == 2 ? 1.0 : 5.0) : 10 - static_cast<double>(nodes);
  };
  EXPECT_EQ(divide(2, 8, Together::sum, score), (std::vector<std::int64_t>{2, 6}));
}

TEST(Division, TheLastModelLeavesNodesThatMakeItDearer) {
  // The first costs 1 on a node and 5 on others, the second 1 on 2 nodes and 5 on others: 5 of 8
  // nodes stay idle.
  const auto score = [](std::size_t model, std::int64_t nodes) {
    return nodes == (model == 0 ? 1 : 2) ? 1.0 : 5.0;
  };
  EXPECT_EQ(divide(2, 8, Together::sum, score), (std::vector<std::int64_t>{1, 2}));
}

TEST(Division, AModelThatNeedsManyNodesGetsThem) {
  // The second has a plan on 4 nodes and more; on 3 nobody can be helped.
  const auto score = [](std::size_t model, std::int64_t nodes) {
    return model == 0 || nodes >= 4 ? 1 / static_cast<double>(nodes) : kNever;
  };
  EXPECT_EQ(divide(2, 5, Together::longest, score), (std::vector<std::int64_t>{1, 4}));
  EXPECT_THAT(divide(2, 3, Together::longest, score), ::testing::IsEmpty());
  EXPECT_THAT(divide(2, 1, Together::longest, score), ::testing::IsEmpty());
}

TEST(Division, ANumberThatDividesBadlyLeavesNodesIdle) {
  // 7 nodes are slower than 6: two models of which the first wants one node, of 8.
  const auto score = [](std::size_t model, std::int64_t nodes) {
    return model == 0 ? 0.1 : nodes == 7 ? 3.0 : 6 / static_cast<double>(nodes);
  };
  EXPECT_EQ(divide(2, 8, Together::longest, score), (std::vector<std::int64_t>{1, 6}));
}

TEST(Division, WhatIsLeftForTheOthersIsDividedOnce) {
  // Eight models that cost nothing on 16 nodes each, 8 x 16 = 128: some 20 counts for each of seven
  // are 10^9 divisions, of which most leave the same nodes to the same models.
  const auto score = [](std::size_t, std::int64_t nodes) {
    return static_cast<double>(nodes > 16 ? nodes - 16 : 16 - nodes);
  };
  EXPECT_EQ(divide(8, 128, Together::sum, score), std::vector<std::int64_t>(8, 16));
}

TEST(Division, HalvingAsksFewNumbers) {
  // 1,024 nodes have 37 counts each; halving 36 of the first model asks 6 and a neighbour of each
  // model, of the second two counts a question.
  std::set<std::pair<std::size_t, std::int64_t>> asked;
  const auto nodes = divide(2, 1024, Together::longest, [&](std::size_t model, std::int64_t count) {
    EXPECT_TRUE(asked.emplace(model, count).second) << "asked twice";
    return (model == 0 ? 700.0 : 300.0) / static_cast<double>(count);
  });
  ASSERT_EQ(nodes.size(), 2U);
  EXPECT_LE(nodes[0] + nodes[1], 1024);
  // 640 and 384 are both counts: 700/640 = 1.094, 300/384 = 0.78; 768 and 256: 0.91, 1.17.
  EXPECT_EQ(nodes, (std::vector<std::int64_t>{640, 384}));
  EXPECT_LE(asked.size(), 24U);
}

TEST(Division, SharesAreTheSearchesOfTheirDevices) {
  // gpt2 twice on two nodes of 8, with the same work: a node each. Twice the tokens of one model
  // cannot end before the other.
  std::vector<Work> works(
      2, {"gpt2-medium", testing::task("gpt2-medium", "dgx-a100-80g", 16, 16, 1024), 1e9});
  for (Work& work : works) {
    work.task.only = {{"schedule", {"1f1b"}}, {"pp", {"1"}}, {"tp", {"1"}}, {"cp", {"1"}}};
  }
  works[1].tokens = 2e9;
  full::Options options;
  options.reserve = 2_GiB;
  const Division found = division(works, 16, options);
  ASSERT_EQ(found.apart.shares.size(), 2U);
  full::Task alone = works[0].task;
  alone.devices = 8;
  const auto best = good_plan(alone, options);
  ASSERT_TRUE(best);
  EXPECT_EQ(found.apart.shares[0].devices, 8);
  EXPECT_EQ(found.apart.shares[0].best.step_time, best->step_time);
  EXPECT_DOUBLE_EQ(found.apart.shares[1].time.value(), 2e9 / best->tokens_per_s);
  EXPECT_EQ(found.apart.end, found.apart.shares[1].time);
  ASSERT_EQ(found.in_turn.shares.size(), 2U);
  // In turn: 3e9 tokens at the speed of 16 devices.
  EXPECT_DOUBLE_EQ(found.in_turn.end.value(), 3e9 / found.in_turn.shares[0].best.tokens_per_s);
  EXPECT_EQ(found.in_turn.shares[1].devices, 16);
}

TEST(Division, WhereNothingRunsEachModelSaysWhy) {
  // Parameters, gradients and states of 175e9 parameters are 18 bytes each: 197 GB on each of 16.
  std::vector<Work> works{
      {"small", testing::task("gpt2-medium", "dgx-a100-80g", 16, 16, 1024), 1e9},
      {"large", testing::task("gpt3-175b", "dgx-a100-80g", 16, 16, 2048), 1e9}};
  for (Work& work : works) {
    work.task.only = {{"schedule", {"1f1b"}}, {"cp", {"1"}}, {"offload_optimizer", {"none"}}};
  }
  const Division found = division(works, 16, {.reserve = 2_GiB});
  EXPECT_FALSE(found.runs());
  ASSERT_EQ(found.missing.mistakes.size(), 1U);
  EXPECT_EQ(found.missing.mistakes[0].where, "large");
  EXPECT_THAT(
      found.missing.mistakes[0].expected,
      ::testing::AllOf(::testing::StartsWith("no plan fits on 16 devices; the most frugal, tp"),
                       ::testing::HasSubstr("GiB', expected at most 78 GiB of hbm")));
}

}  // namespace
}  // namespace orrery::advice
