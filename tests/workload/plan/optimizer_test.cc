// SPDX-License-Identifier: Apache-2.0
// What optimizers keep and move, by hand.
#include "workload/plan/optimizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cases.h"
#include "workload/plan/plan.h"

namespace orrery::plan {
namespace {

using testing::HasSubstr;

zoo::ModelOperator weight(std::int64_t rows, std::int64_t columns) {
  zoo::ModelOperator op;
  op.kind = graph::OperatorKind::gemm;
  op.gemm = {.batch = 1, .m = 8, .n = columns, .k = rows};
  op.has_weight = true;
  op.parameters = rows * columns;
  return op;
}

Plan with(Optimizer optimizer) {
  Plan plan;
  plan.optimizer = optimizer;
  return plan;
}

/// A matrix of 1,024 x 4,096 in a layer, and 1,024 parameters of a norm.
constexpr std::int64_t kMatrix = 1024 * 4096;
constexpr std::int64_t kAll = kMatrix + 1024;

Bytes kept(Optimizer optimizer) {
  return moment_bytes(with(optimizer), kAll, matrices_of(weight(1024, 4096), kFirstLayerBlock));
}

TEST(Optimizers, KeepWhatTheirRulesNeed) {
  EXPECT_EQ(kept(Optimizer::adam), Bytes(8 * kAll));
  EXPECT_EQ(kept(Optimizer::lion), Bytes(4 * kAll));
  EXPECT_EQ(kept(Optimizer::sgd), Bytes(4 * kAll));
  // Two bytes a parameter, and twice 4 bytes for each 256: 4,195,328 / 256 = 16,388 blocks.
  EXPECT_EQ(kept(Optimizer::adamw_8bit), Bytes(2 * (kAll + 4 * 16388)));
  EXPECT_NEAR(static_cast<double>(kept(Optimizer::adamw_8bit).value()) / kAll, 2.03, 0.005);
  // 1,024 rows, 4,096 columns and the norm, in fp32.
  EXPECT_EQ(kept(Optimizer::adafactor), Bytes(4 * (1024 + 4096 + 1024)));
  EXPECT_EQ(kept(Optimizer::muon), Bytes(4 * kMatrix + 8 * 1024));
  // A moment_type is of those that have no type of their own.
  Plan narrow = with(Optimizer::adamw_8bit);
  narrow.moment_type = graph::DataType::bf16;
  EXPECT_EQ(moment_bytes(narrow, kAll, {}), kept(Optimizer::adamw_8bit));
  narrow.optimizer = Optimizer::lion;
  EXPECT_EQ(moment_bytes(narrow, kAll, {}), Bytes(2 * kAll));
}

TEST(Optimizers, MoveGradientParameterAndStates) {
  const Matrices matrices = matrices_of(weight(1024, 4096), kFirstLayerBlock);
  const auto moved = [&](Optimizer optimizer) {
    return update_bytes(with(optimizer), Bytes(4), kAll, matrices);
  };
  EXPECT_EQ(moved(Optimizer::adam), Bytes(28 * kAll));  // 4 + 2 x 4 + 4 x 4
  // Decay 8; moments 12, 8 and 12; root, correction and epsilon 8 each; step 8 + 8.
  EXPECT_EQ(moved(Optimizer::adam_foreach), Bytes(80 * kAll));
  EXPECT_EQ(moved(Optimizer::lion), Bytes(20 * kAll));  // 4 + 2 x 4 + 2 x 4
  EXPECT_EQ(moved(Optimizer::adafactor), Bytes(20 * kAll) + 2 * kept(Optimizer::adafactor));
  EXPECT_EQ(moved(Optimizer::muon), Bytes(12 * kAll + 4 * kMatrix) + 2 * kept(Optimizer::muon));
}

TEST(Optimizers, MuonOrthogonalisesMatricesOfLayersAlone) {
  // Five steps of 4 m^2 n + 2 m^3, m 1,024, n 4,096: 5 (17,179,869,184 + 2,147,483,648).
  const Matrices layer = matrices_of(weight(4096, 1024), kFirstLayerBlock);
  EXPECT_EQ(layer.flops, 96'636'764'160);
  EXPECT_EQ(layer.in_layers, kMatrix);
  const Matrices head = matrices_of(weight(1024, 4096), kHeadBlock);
  EXPECT_EQ(head.flops, 0);
  EXPECT_EQ(head.elements, kMatrix);
  // A rank of many still has one whole matrix.
  EXPECT_EQ((layer * 8 / 4).flops, 2 * layer.flops);
  EXPECT_EQ((layer * 8 / 64).flops, layer.flops);
}

TEST(Optimizers, RefuseWhatTheyCannotMean) {
  const auto refusal = [](const Plan& plan) {
    const Result<void> checked = check(plan, cases::small_gpt(2));
    return checked ? "" : checked.error().to_string();
  };
  for (const Named<Optimizer>& optimizer : named_values(Optimizer{})) {
    EXPECT_EQ(refusal(with(optimizer.value)), "") << optimizer.name;
  }
  Plan plan = with(Optimizer::lion);
  plan.offload_optimizer = Offload::cpu;
  EXPECT_THAT(refusal(plan), HasSubstr("optimizer: found 'lion', expected adam with offload"));
  plan = with(Optimizer::muon);
  plan.zero = 3;
  EXPECT_THAT(refusal(plan), HasSubstr("optimizer: found 'muon', expected another with zero 3"));
}

}  // namespace
}  // namespace orrery::plan
