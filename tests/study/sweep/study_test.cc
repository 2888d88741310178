// SPDX-License-Identifier: Apache-2.0
#include "study/sweep/study.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "study/sweep/kind.h"
#include "study/sweep/run_sweep.h"

namespace orrery::sweep {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* kBase =
    "model: gpt2\n"
    "machine: dgx-a100-80g\n"
    "plan: {global_batch: 8}\n";

Result<Study> study_of(const std::string& text) {
  return parse_config(text, "study.yaml", ConfigSyntax::yaml).and_then([](const ConfigNode& node) {
    return parse_study(node, "study");
  });
}

std::string mistakes_of(const std::string& text) {
  const auto study = study_of(text);
  return study ? "" : study.error().to_string();
}

Outcome study_outcome_of(const Study& study, std::size_t point) {
  Shared shared;
  return prepare_point(study, point, "1").run(shared);
}

/// The cell of a figure of kind simulate.
double figure(const Outcome& outcome, std::string_view name) {
  const auto* const found = std::find(kSimulateFigures.begin(), kSimulateFigures.end(), name);
  const Cell& cell = outcome.figures.at(static_cast<std::size_t>(found - kSimulateFigures.begin()));
  const auto* const integer = std::get_if<std::int64_t>(&cell);
  return integer == nullptr ? std::get<double>(cell) : static_cast<double>(*integer);
}

TEST(Study, EveryMistakeIsReportedAtOnceWithItsPlace) {
  const std::string text = mistakes_of(
      "kind: simulate\n"
      "model: gpt-2\n"
      "machine: dgx-a100-80g\n"
      "plam: {tp: 2}\n"
      "skip_invalid: maybe\n"
      "vary:\n"
      "  machne.name: [a]\n"
      "  plan.pp: {from: 1, to: 4}\n");
  EXPECT_THAT(text, HasSubstr("study.yaml:2: model: found 'gpt-2'"));
  EXPECT_THAT(text, HasSubstr("did you mean 'gpt2'?"));
  EXPECT_THAT(text, HasSubstr("study.yaml:4: plam: unknown field (did you mean 'plan'?)"));
  EXPECT_THAT(text, HasSubstr("study.yaml:5: skip_invalid: found 'maybe'"));
  EXPECT_THAT(text, HasSubstr("study.yaml:7: found 'machne.name'"));
  EXPECT_THAT(text, HasSubstr("did you mean 'machine'?"));
  EXPECT_THAT(text, HasSubstr("study.yaml:8: vary.plan.pp.step: not given"));
}

TEST(Study, VariedNamesAndValuesAreCheckedBeforeAnythingRuns) {
  const std::string text = mistakes_of(std::string(kBase) +
                                       "vary:\n"
                                       "  plan.tpp: [1]\n"
                                       "  plan.recompute: [full, ful]\n"
                                       "  machine.network.nvlnk.bandwidth: [1 GB/s]\n"
                                       "  machine.network.0.bandwidth: [100 GB/s, 100 GB]\n"
                                       "  model.layers: [2, two]\n");
  EXPECT_THAT(text, HasSubstr("study.yaml:5: plan.tpp: unknown field"));
  EXPECT_THAT(text, HasSubstr("study.yaml:6: plan.recompute: found 'ful'"));
  EXPECT_THAT(text, HasSubstr("study.yaml:7: machine.network.nvlnk.bandwidth: found 'nvlnk'"));
  EXPECT_THAT(text, HasSubstr("did you mean 'nvlink'?"));
  EXPECT_THAT(text, HasSubstr("study.yaml:8: machine.network.0.bandwidth: found '100 GB'"));
  EXPECT_THAT(text, HasSubstr("study.yaml:9: model.n_layer: found 'two'"));
  EXPECT_THAT(mistakes_of("kind: simulat\nmodel: gpt2\nmachine: dgx-h100\n"),
              HasSubstr("did you mean 'simulate'?"));
  EXPECT_THAT(mistakes_of("model: gpt2\n"), HasSubstr("machine: required, but missing"));
}

TEST(Study, APointSaysTheSameAsADescriptionWithoutAnythingVaried) {
  const auto varied = study_of(std::string(kBase) +
                               "vary:\n"
                               "  plan.tp: [1, 2]\n"
                               "  machine.network.nvlink.bandwidth: [300 GB/s, 0.15 TB/s]\n");
  const auto alone =
      study_of("model: gpt2\nmachine: dgx-a100-80g\nplan: {tp: 2, global_batch: 8}\n");
  ASSERT_TRUE(varied) << varied.error().to_string();
  ASSERT_TRUE(alone) << alone.error().to_string();
  ASSERT_EQ(varied->space.count, 4U);
  // Point 2 is tp 2 with the bandwidth that the machine has anyway.
  EXPECT_EQ(prepare_point(*varied, 2, "1").hash, prepare_point(*alone, 0, "1").hash);
  EXPECT_NE(prepare_point(*varied, 3, "1").hash, prepare_point(*alone, 0, "1").hash);
  EXPECT_DOUBLE_EQ(figure(study_outcome_of(*varied, 2), "step_time_s"),
                   figure(study_outcome_of(*alone, 0), "step_time_s"));
  EXPECT_LT(figure(study_outcome_of(*varied, 2), "step_time_s"),
            figure(study_outcome_of(*varied, 3), "step_time_s"));
}

TEST(Study, WhatIsRefusedIsAResultWithItsReason) {
  // gpt2 has 12 heads: 8 does not divide them. Nor does 12 devices fill whole nodes of 8.
  const auto study = study_of(std::string(kBase) + "vary:\n  plan.tp: [4, 8]\n");
  ASSERT_TRUE(study) << study.error().to_string();
  EXPECT_EQ(study_outcome_of(*study, 0).error, "");
  const Outcome refused = study_outcome_of(*study, 1);
  EXPECT_THAT(refused.error, HasSubstr("tp: found '8'"));
  for (const Cell& cell : refused.figures) {
    EXPECT_TRUE(std::holds_alternative<std::monostate>(cell));
  }
}

TEST(Study, APlanThatDoesNotFitTellsItsMemory) {
  const auto study =
      study_of("model: gpt3-175b\nmachine: dgx-a100-80g\nplan: {global_batch: 8, tp: 8}\n");
  ASSERT_TRUE(study) << study.error().to_string();
  const Outcome outcome = study_outcome_of(*study, 0);
  EXPECT_THAT(outcome.error, HasSubstr("at most 80 GiB"));
  EXPECT_EQ(figure(outcome, "fits"), 0);
  EXPECT_GT(figure(outcome, "memory_bytes"), figure(outcome, "capacity_bytes"));
}

TEST(Study, ModelsMachinesAndPlansAreVariedByName) {
  const auto study = study_of(
      "model: gpt2\nplan: {global_batch: 8}\n"
      "vary: {machine: [dgx-a100-80g, dgx-h100], model.layers: [2, 4], plan.micro_batch_size: "
      "[1]}\n");
  ASSERT_TRUE(study) << study.error().to_string();
  ASSERT_EQ(study->space.count, 4U);
  EXPECT_LT(figure(study_outcome_of(*study, 0), "step_time_s"),
            figure(study_outcome_of(*study, 1), "step_time_s"));
  EXPECT_GT(figure(study_outcome_of(*study, 0), "step_time_s"),
            figure(study_outcome_of(*study, 2), "step_time_s"));
  EXPECT_THAT(mistakes_of("model: gpt2\nvary: {machine: [dgx-a100-80g, dgx-h1000]}\n"),
              HasSubstr("study.yaml:2: machine: found 'dgx-h1000'"));
}

TEST(Study, SkipInvalidFalseRefusesTheStudy) {
  const std::string vary = "vary:\n  machine.device.idle_power: [10 W, 10 kW]\n";
  EXPECT_EQ(mistakes_of(kBase + vary), "");
  EXPECT_THAT(mistakes_of(std::string(kBase) + "skip_invalid: false\n" + vary),
              HasSubstr("machine.device.idle_power: found '10 kW'"));
}

TEST(Study, CollectivesAreAKind) {
  const auto study = study_of(
      "kind: collective\nmachine: dgx-h100\n"
      "collective: {kind: all_reduce, devices: 8}\n"
      "vary: {collective.size: {from: 1 MiB, to: 4 MiB, factor: 2}, collective.algorithm: [ring, "
      "treee]}\n");
  EXPECT_THAT(study ? "" : study.error().to_string(),
              HasSubstr("collective.algorithm: found 'treee', expected one of"));
  // NCCL's names too, as in `orrery collective`.
  const auto by_nccl = study_of(
      "kind: collective\nmachine: dgx-h100\n"
      "collective: {kind: all_reduce, devices: 16, size: 1 MiB}\n"
      "vary: {collective.algorithm: [tree, double_binary_tree, nvls, in_switch]}\n");
  ASSERT_TRUE(by_nccl) << by_nccl.error().to_string();
  for (const std::size_t point : {0U, 2U}) {
    EXPECT_EQ(study_outcome_of(*by_nccl, point).figures,
              study_outcome_of(*by_nccl, point + 1).figures);
  }
  const auto good = study_of(
      "kind: collective\nmachine: dgx-h100\n"
      "collective: {kind: all_reduce, devices: 8}\n"
      "vary: {collective.size: {from: 1 MiB, to: 4 MiB, factor: 2}}\n");
  ASSERT_TRUE(good) << good.error().to_string();
  const auto time = [&](std::size_t point) {
    return std::get<double>(study_outcome_of(*good, point).figures.front());
  };
  EXPECT_LT(time(0), time(1));
  EXPECT_LT(time(1), time(2));
}

TEST(Study, OneFieldIsVariedUnderOneName) {
  const std::string text = mistakes_of(std::string(kBase) +
                                       "vary:\n"
                                       "  plan.tp: [1, 2]\n"
                                       "  plan.tensor_parallel_degree: [1, 2]\n"
                                       "  model.layers: [2, 4]\n"
                                       "  model.n_layer: [2, 4]\n"
                                       "  machine.network.nvlink.bandwidth: [100 GB/s]\n"
                                       "  machine.network.0.bandwidth: [200 GB/s]\n"
                                       "  machine.network.1.bandwidth: [25 GB/s]\n");
  EXPECT_THAT(text, HasSubstr("study.yaml:6: plan.tensor_parallel_degree: the same field as "
                              "plan.tp; vary it under one name"));
  EXPECT_THAT(text, HasSubstr("model.n_layer: the same field as model.layers"));
  EXPECT_THAT(text, HasSubstr("machine.network.0.bandwidth: the same field as "
                              "machine.network.nvlink.bandwidth"));
  EXPECT_THAT(text, Not(HasSubstr("machine.network.1")));
}

TEST(Study, AResultDoesNotSayWhereTheStudyStoodInItsFile) {
  const auto study = study_of(std::string(kBase) + "vary: {plan.tp: [5]}\n");
  const auto lower = study_of("\n\n" + std::string(kBase) + "vary: {plan.tp: [5]}\n");
  ASSERT_TRUE(study && lower);
  EXPECT_EQ(study_outcome_of(*study, 0).error, study_outcome_of(*lower, 0).error);
  EXPECT_THAT(study_outcome_of(*study, 0).error, Not(HasSubstr("study.yaml")));
  EXPECT_EQ(prepare_point(*study, 0, "1").hash, prepare_point(*lower, 0, "1").hash);
}

}  // namespace
}  // namespace orrery::sweep
