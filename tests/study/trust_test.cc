// SPDX-License-Identifier: Apache-2.0
#include "study/trust.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "machine/describe.h"
#include "study/validate.h"

namespace orrery::study {
namespace {

using ::testing::HasSubstr;

constexpr const char* kModel = R"(floor: 0.02
kinds: {dense: 0.03, experts: 0.1}
frameworks: {nemo: 0.04, none: 0.06}
origins: {fitted: 0.0, inferred: 0.2}
rests: {dense: 0.12, experts: 0.01}
cells:
  - {kind: experts, framework: nemo, origin: fitted, rows: 30, low: -0.05, high: 0.4}
  - {kind: experts, framework: none, origin: fitted, rows: 9, low: 0.001, high: 0.001}
validated:
  - {table: one, machine: box, kind: dense, framework: none, origin: fitted, rows: 5, median: 0.1}
  - {table: two, machine: other, kind: dense, framework: nemo, origin: fitted, rows: 50, median: 0.2}
  - {table: three, machine: box, kind: experts, framework: nemo, origin: fitted, rows: 7, median: 0.3}
)";

ErrorModel model() {
  return *parse_config(kModel, "errors.yaml", ConfigSyntax::yaml).and_then(ErrorModel::parse);
}

TEST(Trust, SigmasOfCausesAddUpAsSquaresAndBoundTheRatio) {
  // 0.03, 0.04, 0 and 0.12: sqrt(0.0009 + 0.0016 + 0.0144) = 0.13. exp(-+1.28155 x 0.13) = 0.8465
  // and 1.1813 of 2 s.
  const Trust trust = model().trust({"dense", "nemo", "fitted", "box"});
  EXPECT_NEAR(trust.sigma.total(), 0.13, 1e-12);
  EXPECT_EQ(trust.rows, 0);
  EXPECT_NEAR(interval80(trust, 2).least, 2 * 0.84653, 1e-4);
  EXPECT_NEAR(interval80(trust, 2).most, 2 * 1.18129, 1e-4);
}

TEST(Trust, WhatHasRowsHasTheirPercentilesAndARateTurnsThemRound) {
  const Trust trust = model().trust({"experts", "nemo", "fitted", "box"});
  EXPECT_EQ(trust.rows, 30);
  EXPECT_NEAR(interval80(trust, 1).least, std::exp(-0.05), 1e-12);
  EXPECT_NEAR(interval80(trust, 1).most, std::exp(0.4), 1e-12);
  // A time that is up to 1.49 times as long is a rate of 0.67.
  EXPECT_NEAR(interval80(trust, 1, true).least, std::exp(-0.4), 1e-12);
  EXPECT_NEAR(interval80(trust, 1, true).most, std::exp(0.05), 1e-12);
}

// The longest steps of 34 runs on a busy H200 or H100 take 1.02 times the median one (median of the
// runs), of 10 that wait for the host 1.21 times; of several devices nothing is known.
TEST(Trust, SpreadOfSingleStepsIsKnownOfOneDeviceUnderPyTorch) {
  const zoo::Model small = *zoo::load_model("llama-3.2-1b");
  const machine::Machine box = *machine::load_machine("dgx-h200");
  plan::Plan plan{.autograd = plan::Autograd::pytorch};
  const auto spread = [&] { return model().trust(causes_of(small, plan, box)).p95; };
  ASSERT_TRUE(spread());
  EXPECT_DOUBLE_EQ(spread()->least, 1.02);
  EXPECT_DOUBLE_EQ(spread()->most, 1.21);
  EXPECT_FALSE(model().trust(causes_of(small, plan, box, StepFigure::allocated)).p95);
  plan.dp = 2;
  EXPECT_FALSE(spread());
  plan = {.autograd = plan::Autograd::transformer_engine};
  EXPECT_FALSE(spread());
}

TEST(Trust, BytesHaveNeitherAFloorNorTheErrorsOfTimes) {
  const ErrorModel errors = *parse_config(R"(floor: 0.02
kinds: {dense: 0.3, memory_dense: 0.01, memory_adapters: 0.05}
frameworks: {none: 0.1}
origins: {pytorch: 0.1}
rests: {dense: 0.1}
cells:
  - {kind: memory_dense, framework: none, origin: pytorch, rows: 9, low: -0.001, high: 0.003}
validated: []
)",
                                          "errors.yaml", ConfigSyntax::yaml)
                                 .and_then(ErrorModel::parse);
  const Trust trust = errors.trust({"memory_dense", "none", "pytorch", "box"});
  EXPECT_DOUBLE_EQ(trust.low, -0.001);
  EXPECT_DOUBLE_EQ(trust.high, 0.003);
  // Without rows of its own: what adapters' bytes are off by, not a time's 1.28 sqrt(0.05^2 + 3
  // 0.1^2).
  const Trust alone = errors.trust({"memory_adapters", "none", "pytorch", "box"});
  EXPECT_NEAR(alone.high, kEightyPercent * 0.05, 1e-12);
}

TEST(Trust, FiguresOfAStepAndJobsAreKindsOfTheirOwn) {
  zoo::Model small;
  const machine::Machine box;
  plan::Plan plan{.autograd = plan::Autograd::pytorch};
  EXPECT_EQ(causes_of(small, plan, box, StepFigure::allocated).kind, "memory_dense");
  EXPECT_EQ(causes_of(small, plan, box, StepFigure::driver).origin, "pytorch");
  small.experts = 8;
  EXPECT_EQ(causes_of(small, plan, box, StepFigure::reserved).kind, "reserved_experts");
  EXPECT_EQ(causes_of(small, plan, box).kind, "experts");
  plan.lora_rank = 16;
  EXPECT_EQ(causes_of(small, plan, box, StepFigure::driver).kind, "driver_adapters");
}

TEST(Trust, NoIntervalIsNarrowerThanTheFloor) {
  const Trust trust = model().trust({"experts", "none", "fitted", "box"});
  EXPECT_DOUBLE_EQ(trust.low, -0.02);
  EXPECT_DOUBLE_EQ(trust.high, 0.02);
}

TEST(Trust, WhatNoRowHasIsAsUncertainAsTheWorst) {
  const Trust trust = model().trust({"dense", "somebody's", "fitted", "box"});
  EXPECT_DOUBLE_EQ(trust.sigma.framework, 0.06);
}

TEST(Trust, TheNearestRowsAreOfTheKindThenOfTheMachine) {
  const Trust trust = model().trust({"dense", "nemo", "fitted", "box"});
  ASSERT_EQ(trust.nearest.size(), 2U);
  EXPECT_EQ(trust.nearest[0].table, "one");
  EXPECT_EQ(trust.nearest[1].table, "two");
}

TEST(Trust, TheLargestCauseIsWhatToMeasureNext) {
  EXPECT_THAT(model().trust({"dense", "nemo", "inferred", "box"}).next,
              HasSubstr("kernels of box"));
  EXPECT_THAT(model().trust({"dense", "nemo", "fitted", "box"}).next, HasSubstr("one such run"));
}

TEST(Trust, WhatTwoPredictionsShareCancelsInTheirRatio) {
  const ErrorModel errors = model();
  const auto joint = [&](const Causes& a, const Causes& b) {
    return joint_sigma(a, errors.trust(a).sigma, b, errors.trust(b).sigma);
  };
  const Causes a{"dense", "nemo", "inferred", "box"};
  EXPECT_NEAR(joint(a, a), std::sqrt(2) * 0.12, 1e-12);  // two rests
  const Causes elsewhere{"dense", "nemo", "inferred", "other"};
  EXPECT_NEAR(joint(a, elsewhere), std::sqrt(2 * (0.12 * 0.12 + 0.2 * 0.2)), 1e-12);
  const Causes without{"dense", "none", "inferred", "box"};
  EXPECT_NEAR(joint(a, without), std::sqrt(2 * 0.12 * 0.12 + 0.04 * 0.04 + 0.06 * 0.06), 1e-12);
}

TEST(Trust, EveryMistakeOfAFileIsNamedAtOnce) {
  std::string text = kModel;
  text.replace(text.find("0.03"), 4, "-0.3");
  text.replace(text.find("low: -0.05"), 10, "low: 0.5");
  text += "more: 1\n";
  const auto read =
      parse_config(text, "errors.yaml", ConfigSyntax::yaml).and_then(ErrorModel::parse);
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error().to_string(), HasSubstr("a deviation of 0 or more"));
  EXPECT_THAT(read.error().to_string(), HasSubstr("low or more"));
  EXPECT_THAT(read.error().to_string(), HasSubstr("more"));
}

TEST(Trust, TheShippedModelKnowsWhatItsTablesHave) {
  const auto errors = ErrorModel::load();
  ASSERT_TRUE(errors) << errors.error().to_string();
  const Trust trust = errors->trust({"dense", "nemo", "fitted", "dgx-h100"});
  EXPECT_GT(trust.rows, 0);
  EXPECT_LT(trust.low, 0);
  EXPECT_GT(trust.high, 0);
  ASSERT_FALSE(trust.nearest.empty());
  EXPECT_EQ(trust.nearest.front().causes.machine, "dgx-h100");
  // No table states megatron on such a machine; NeMo runs its layers, llm-foundry others.
  const Trust megatron = errors->trust({"dense", "megatron", "fitted", "dgx-h100"});
  ASSERT_FALSE(megatron.nearest.empty());
  for (const Validated& group : megatron.nearest) {
    EXPECT_TRUE(group.causes.framework == "nemo" || group.causes.framework == "none")
        << group.table;
  }
}

TEST(Origins, EveryNumberOfAMachineIsCountedOnce) {
  const auto machine = machine::load_machine("dgx-h100");
  const OriginCounts counts = count_origins(*machine);
  EXPECT_EQ(counts.measured + counts.fitted + counts.stated + counts.inferred,
            machine::fields_of(*machine).size());
  EXPECT_GT(counts.measured, 5U);  // what one H100 was measured for
  EXPECT_EQ(kernel_origin(*machine, "fp8"), "fitted");
  EXPECT_EQ(kernel_origin(*machine::load_machine("mi300x"), ""), "inferred");
}

TEST(Covered, IsTheShareOfRowsInsideTheirIntervals) {
  std::vector<ValidationRow> rows(3);
  for (ValidationRow& row : rows) {
    row.predicted = 10;
    row.published = 10.5;
    row.interval80 = Range{.least = 9, .most = 11};
  }
  rows[1].published = 12;
  rows[2].published = 8;
  rows[2].memory = true;  // memory is told apart from times
  const ValidationScore score = score_of(rows);
  EXPECT_DOUBLE_EQ(*score.covered, 0.5);
  EXPECT_DOUBLE_EQ(*score.width, 0.1);  // half of 2, of 10
  EXPECT_DOUBLE_EQ(*score_of({rows[2]}).covered, 0);
}

}  // namespace
}  // namespace orrery::study
