// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cases.h"
#include "workload/parallel/lower.h"

namespace orrery {
namespace {

using cases::collectives;
using cases::kHidden;
using cases::kTokens;
using cases::lowered;
using cases::small_llama;
using cases::Tally;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr std::int64_t kLayers = 2;
// Per rank of c = 4: 32 tokens; Q 8 heads, K and V 4 heads each, of 8, 2 bytes.
constexpr std::int64_t kContext = 4;
constexpr Bytes kQuery{kTokens / kContext * 8 * 8 * 2};
constexpr Bytes kKeyValue{kTokens / kContext * 2 * 4 * 8 * 2};

Plan context_parallel(ContextExchange exchange) {
  return {.cp = kContext, .cp_exchange = exchange, .attention = AttentionKernel::flash};
}

TEST(LowerContext, ADegreeOfOneChangesNothing) {
  Plan plan{.dp = 2, .global_batch = 4, .attention = AttentionKernel::flash};
  const Workload without = lowered(small_llama(kLayers), plan);
  plan.cp = 1;
  plan.cp_exchange = ContextExchange::a2a;
  const Workload with = lowered(small_llama(kLayers), plan);
  ASSERT_EQ(without.program_of(0).templates.size(), with.program_of(0).templates.size());
  for (std::size_t t = 0; t < with.program_of(0).templates.size(); ++t) {
    const auto& a = without.program_of(0).templates[t].nodes;
    const auto& b = with.program_of(0).templates[t].nodes;
    ASSERT_EQ(a.size(), b.size());
    for (std::size_t n = 0; n < a.size(); ++n) {
      EXPECT_EQ(a[n].operators, b[n].operators);
    }
  }
}

TEST(LowerContext, RingSendsKeysAndValuesRoundAndTheirGradientsWithThem) {
  const Workload workload = lowered(small_llama(kLayers), context_parallel(ContextExchange::p2p));
  const std::int64_t steps = kLayers * (kContext - 1);
  EXPECT_EQ(collectives(workload, 0, Axis::cp, CollectiveKind::send_recv, StepPhase::forward),
            (Tally{steps, kKeyValue * steps}));
  EXPECT_EQ(collectives(workload, 0, Axis::cp, CollectiveKind::send_recv, StepPhase::backward),
            (Tally{steps, kKeyValue * 2 * steps}));
}

TEST(LowerContext, AllGatherBringsAllKeysAndScattersTheirGradients) {
  const Workload workload =
      lowered(small_llama(kLayers), context_parallel(ContextExchange::all_gather));
  for (const StepPhase phase : {StepPhase::forward, StepPhase::backward}) {
    EXPECT_EQ(collectives(workload, 0, Axis::cp, CollectiveKind::all_gather, phase),
              (Tally{kLayers, kKeyValue * kContext * kLayers}));
  }
  EXPECT_EQ(collectives(workload, 0, Axis::cp, CollectiveKind::reduce_scatter, StepPhase::backward),
            (Tally{kLayers, kKeyValue * kContext * kLayers}));
}

TEST(LowerContext, UlyssesMovesQueriesKeysValuesAndTheResult) {
  const Workload workload = lowered(small_llama(kLayers), context_parallel(ContextExchange::a2a));
  for (const StepPhase phase : {StepPhase::forward, StepPhase::backward}) {
    EXPECT_EQ(collectives(workload, 0, Axis::cp, CollectiveKind::all_to_all, phase),
              (Tally{2 * kLayers, (kQuery + kKeyValue + kQuery) * kLayers}));
  }
}

TEST(LowerContext, BothTogetherUseTheTwoPartsOfTheRanks) {
  Plan plan = context_parallel(ContextExchange::a2a_p2p);
  plan.cp_a2a = 2;
  const Workload workload = lowered(small_llama(kLayers), plan);
  EXPECT_EQ(workload.group(Axis::cp_a2a).members.size(), 2);
  EXPECT_EQ(workload.group(Axis::cp_ring).members.size(), 2);
  EXPECT_EQ(
      collectives(workload, 0, Axis::cp_a2a, CollectiveKind::all_to_all, StepPhase::forward).count,
      2 * kLayers);
  EXPECT_EQ(
      collectives(workload, 0, Axis::cp_ring, CollectiveKind::send_recv, StepPhase::forward).count,
      kLayers);
}

TEST(LowerContext, EveryExchangeLeavesTheSameWorkPerRank) {
  const double all = cases::matrix_flops(
      lowered(small_llama(kLayers), {.attention = AttentionKernel::flash}), StepPhase::forward);
  for (const auto exchange : {ContextExchange::p2p, ContextExchange::all_gather,
                              ContextExchange::a2a, ContextExchange::a2a_p2p}) {
    Plan plan = context_parallel(exchange);
    plan.cp_a2a = exchange == ContextExchange::a2a_p2p ? 2 : 1;
    EXPECT_NEAR(cases::matrix_flops(lowered(small_llama(kLayers), plan), StepPhase::forward),
                all / kContext, 1e-9 * all);
  }
}

TEST(LowerContext, GradientsAreSummedOverItsRanksToo) {
  const Workload workload = lowered(small_llama(kLayers), context_parallel(ContextExchange::p2p));
  EXPECT_EQ(workload.group(Axis::dp).members.size(), kContext);
  EXPECT_EQ(
      collectives(workload, 0, Axis::dp, CollectiveKind::all_reduce, StepPhase::optimizer).count,
      1);
}

TEST(LowerContext, WhatDoesNotDivideIsRefused) {
  const auto reasons = [](Plan plan) {
    const auto checked = check(plan, small_llama(kLayers));
    return checked ? std::string() : checked.error().to_string();
  };
  EXPECT_THAT(reasons({.cp = 2}), HasSubstr("attention: found 'unfused', expected flash"));
  EXPECT_THAT(reasons({.cp = 3, .attention = AttentionKernel::flash}),
              HasSubstr("sequence: found '128', expected a multiple of 2 x cp = 6"));
  EXPECT_THAT(
      reasons({.cp = 8, .cp_exchange = ContextExchange::a2a, .attention = AttentionKernel::flash}),
      HasSubstr("cp_exchange: found 'a2a'"));
  // Only tp is to blame where no heads are exchanged.
  EXPECT_THAT(reasons({.tp = 3, .cp = 2, .attention = AttentionKernel::flash}),
              AllOf(HasSubstr("tp: found '3'"), Not(HasSubstr("cp_exchange"))));
  EXPECT_THAT(reasons({.cp_a2a = 2}), HasSubstr("cp_a2a: found '2'"));
}

}  // namespace
}  // namespace orrery
