// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <string_view>

#include "cases.h"
#include "workload/parallel/lower.h"

namespace orrery::parallel {
namespace {

using cases::collectives;
using cases::each_node;
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

plan::Plan context_parallel(plan::ContextExchange exchange) {
  return {.cp = kContext, .cp_exchange = exchange, .attention = zoo::AttentionKernel::flash};
}

TEST(LowerContext, ADegreeOfOneChangesNothing) {
  plan::Plan plan{.dp = 2, .global_batch = 4, .attention = zoo::AttentionKernel::flash};
  const graph::Workload without = lowered(small_llama(kLayers), plan);
  plan.cp = 1;
  plan.cp_exchange = plan::ContextExchange::a2a;
  const graph::Workload with = lowered(small_llama(kLayers), plan);
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
  const graph::Workload workload =
      lowered(small_llama(kLayers), context_parallel(plan::ContextExchange::p2p));
  const std::int64_t steps = kLayers * (kContext - 1);
  EXPECT_EQ(collectives(workload, 0, plan::Axis::cp, graph::CollectiveKind::send_recv,
                        plan::StepPhase::forward),
            (Tally{steps, kKeyValue * steps}));
  EXPECT_EQ(collectives(workload, 0, plan::Axis::cp, graph::CollectiveKind::send_recv,
                        plan::StepPhase::backward),
            (Tally{steps, kKeyValue * 2 * steps}));
}

TEST(LowerContext, AllGatherBringsAllKeysAndScattersTheirGradients) {
  const graph::Workload workload =
      lowered(small_llama(kLayers), context_parallel(plan::ContextExchange::all_gather));
  for (const plan::StepPhase phase : {plan::StepPhase::forward, plan::StepPhase::backward}) {
    EXPECT_EQ(collectives(workload, 0, plan::Axis::cp, graph::CollectiveKind::all_gather, phase),
              (Tally{kLayers, kKeyValue * kContext * kLayers}));
  }
  EXPECT_EQ(collectives(workload, 0, plan::Axis::cp, graph::CollectiveKind::reduce_scatter,
                        plan::StepPhase::backward),
            (Tally{kLayers, kKeyValue * kContext * kLayers}));
}

/// Bytes of the kernels around attention that merge what it makes of every rank's keys.
Bytes merged(const graph::Workload& workload, plan::StepPhase phase) {
  Bytes sum{0};
  each_node(workload, 0, [&](const graph::Node& node) {
    for (const graph::Operator& op : node.operators) {
      sum += node.phase == phase && std::string_view(op.name).ends_with("_merge") ? op.bytes
                                                                                  : Bytes(0);
    }
  });
  return sum;
}

// 8 query heads over 4 of keys: twice the keys and values travel. Passes over the queries, of 4
// ranks, each merge of three in unfused kernels: join K and V 4 (bf16: 2 read, 2 written), to fp32
// 3, out - block 6, times a sigmoid 4, out - that 6; once to fp32 and back 3 + 3: 3 x 23 + 6 = 75.
// Backward, of each rank: dK and dV 13 (half a sum 2.5, a copy 4, each), dQ 5, join them 8, and
// three times K and V 4; once zeros 6, to bf16 3 + 6: 4 x 26 + 3 x 4 + 15 = 131.
// Fused, a merge is 5 and the sums of gradients 9 + 5: 3 x 9 + 6 = 33, 4 x 14 + 3 x 4 + 9 = 77.
TEST(LowerContext, PyTorchRepeatsKeysForEveryHeadAndMergesPartsInFp32) {
  plan::Plan plan = context_parallel(plan::ContextExchange::all_gather);
  const auto lower_it = [&] { return lowered(small_llama(kLayers), plan); };
  EXPECT_EQ(merged(lower_it(), plan::StepPhase::forward), Bytes(0));
  plan.autograd = plan::Autograd::pytorch;
  const graph::Workload fused = lower_it();
  EXPECT_EQ(collectives(fused, 0, plan::Axis::cp, graph::CollectiveKind::all_gather,
                        plan::StepPhase::forward),
            (Tally{kLayers, kQuery * 2 * kContext * kLayers}));
  EXPECT_EQ(merged(fused, plan::StepPhase::forward), kQuery * 33 * kLayers);
  EXPECT_EQ(merged(fused, plan::StepPhase::backward), kQuery * 77 * kLayers);
  plan.fused_kernels = false;
  const graph::Workload apart = lower_it();
  EXPECT_EQ(merged(apart, plan::StepPhase::forward), kQuery * 75 * kLayers);
  EXPECT_EQ(merged(apart, plan::StepPhase::backward), kQuery * 131 * kLayers);
  plan.cp_exchange = plan::ContextExchange::a2a;
  EXPECT_EQ(merged(lower_it(), plan::StepPhase::forward), Bytes(0));
}

// Transformer Engine's ring of 4: keys and values are joined (2 passes over them); results: the
// first read and written, 2, three others read beside the sum and written, 9: 11 over the queries.
// Backward the buffer of keys 2, dQ 2 + 9, dK and dV of half the keys copied, 1, twice added, 3,
// and of all, 3.
TEST(LowerContext, TransformerEngineCorrectsWhatTheRunsGive) {
  plan::Plan plan = context_parallel(plan::ContextExchange::p2p);
  plan.autograd = plan::Autograd::transformer_engine;
  const graph::Workload ring = lowered(small_llama(kLayers), plan);
  EXPECT_EQ(merged(ring, plan::StepPhase::forward), (kQuery * 11 + kKeyValue * 2) * kLayers);
  EXPECT_EQ(merged(ring, plan::StepPhase::backward), (kQuery * 11 + kKeyValue * 9) * kLayers);
  plan.cp_exchange = plan::ContextExchange::all_gather;
  EXPECT_EQ(merged(lowered(small_llama(kLayers), plan), plan::StepPhase::backward), Bytes(0));
}

TEST(LowerContext, UlyssesMovesQueriesKeysValuesAndTheResult) {
  const graph::Workload workload =
      lowered(small_llama(kLayers), context_parallel(plan::ContextExchange::a2a));
  for (const plan::StepPhase phase : {plan::StepPhase::forward, plan::StepPhase::backward}) {
    EXPECT_EQ(collectives(workload, 0, plan::Axis::cp, graph::CollectiveKind::all_to_all, phase),
              (Tally{2 * kLayers, (kQuery + kKeyValue + kQuery) * kLayers}));
  }
}

// Columns of heads leave whole rows of tokens: a kernel reads and writes queries, keys and values
// before they are sent, and the result when it has come back; backward the gradient of the result
// before, those of queries, keys and values after. Ranks that gather keys pack nothing.
TEST(LowerContext, HeadsOfTheExchangeArePackedOnce) {
  const auto packed = [](plan::ContextExchange exchange, plan::StepPhase phase) {
    std::map<std::string, Bytes> bytes;
    each_node(lowered(small_llama(kLayers), context_parallel(exchange)), 0,
              [&](const graph::Node& node) {
                for (const graph::Operator& op : node.operators) {
                  if (node.phase == phase && op.name.ends_with("pack_columns")) {
                    bytes[op.name] += op.bytes;
                  }
                }
              });
    return bytes;
  };
  using Packed = std::map<std::string, Bytes>;
  const Bytes all = (kQuery + kKeyValue) * 2 * kLayers;
  const Bytes result = kQuery * 2 * kLayers;
  EXPECT_EQ(packed(plan::ContextExchange::a2a, plan::StepPhase::forward),
            (Packed{{"pack_columns", all}, {"unpack_columns", result}}));
  EXPECT_EQ(packed(plan::ContextExchange::a2a, plan::StepPhase::backward),
            (Packed{{"pack_columns", result}, {"unpack_columns", all}}));
  EXPECT_EQ(packed(plan::ContextExchange::all_gather, plan::StepPhase::forward), Packed());
}

TEST(LowerContext, BothTogetherUseTheTwoPartsOfTheRanks) {
  plan::Plan plan = context_parallel(plan::ContextExchange::a2a_p2p);
  plan.cp_a2a = 2;
  const graph::Workload workload = lowered(small_llama(kLayers), plan);
  EXPECT_EQ(workload.group(plan::Axis::cp_a2a).members.size(), 2);
  EXPECT_EQ(workload.group(plan::Axis::cp_ring).members.size(), 2);
  EXPECT_EQ(collectives(workload, 0, plan::Axis::cp_a2a, graph::CollectiveKind::all_to_all,
                        plan::StepPhase::forward)
                .count,
            2 * kLayers);
  EXPECT_EQ(collectives(workload, 0, plan::Axis::cp_ring, graph::CollectiveKind::send_recv,
                        plan::StepPhase::forward)
                .count,
            kLayers);
}

TEST(LowerContext, EveryExchangeLeavesTheSameWorkPerRank) {
  const double all =
      cases::matrix_flops(lowered(small_llama(kLayers), {.attention = zoo::AttentionKernel::flash}),
                          plan::StepPhase::forward);
  for (const auto exchange : {plan::ContextExchange::p2p, plan::ContextExchange::all_gather,
                              plan::ContextExchange::a2a, plan::ContextExchange::a2a_p2p}) {
    plan::Plan plan = context_parallel(exchange);
    plan.cp_a2a = exchange == plan::ContextExchange::a2a_p2p ? 2 : 1;
    EXPECT_NEAR(cases::matrix_flops(lowered(small_llama(kLayers), plan), plan::StepPhase::forward),
                all / kContext, 1e-9 * all);
  }
}

TEST(LowerContext, GradientsAreSummedOverItsRanksToo) {
  const graph::Workload workload =
      lowered(small_llama(kLayers), context_parallel(plan::ContextExchange::p2p));
  EXPECT_EQ(workload.group(plan::Axis::dp).members.size(), kContext);
  EXPECT_EQ(collectives(workload, 0, plan::Axis::dp, graph::CollectiveKind::all_reduce,
                        plan::StepPhase::optimizer)
                .count,
            1);
}

TEST(LowerContext, WhatDoesNotDivideIsRefused) {
  const auto reasons = [](plan::Plan plan) {
    const auto checked = plan::check(plan, small_llama(kLayers));
    return checked ? std::string() : checked.error().to_string();
  };
  EXPECT_THAT(reasons({.cp = 2}), HasSubstr("attention: found 'unfused', expected flash"));
  EXPECT_THAT(reasons({.cp = 3, .attention = zoo::AttentionKernel::flash}),
              HasSubstr("sequence: found '128', expected a multiple of 2 x cp = 6"));
  EXPECT_THAT(reasons({.cp = 8,
                       .cp_exchange = plan::ContextExchange::a2a,
                       .attention = zoo::AttentionKernel::flash}),
              HasSubstr("cp_exchange: found 'a2a'"));
  // Only tp is to blame where no heads are exchanged.
  EXPECT_THAT(reasons({.tp = 3, .cp = 2, .attention = zoo::AttentionKernel::flash}),
              AllOf(HasSubstr("tp: found '3'"), Not(HasSubstr("cp_exchange"))));
  EXPECT_THAT(reasons({.cp_a2a = 2}), HasSubstr("cp_a2a: found '2'"));
}

}  // namespace
}  // namespace orrery::parallel
