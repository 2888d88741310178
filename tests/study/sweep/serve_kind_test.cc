// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "serving/metrics.h"
#include "serving/requests/generate.h"
#include "study/sweep/kind.h"
#include "study/sweep/run_sweep.h"
#include "study/sweep/study.h"

namespace orrery::sweep {
namespace {

using ::testing::HasSubstr;

constexpr const char* kService =
    "kind: serve\nmodel: llama-3.1-8b\nmachine: dgx-h100\n"
    "requests: {rate: 8, input: 'uniform(500, 1500)', output: 64, count: 40, seed: 3}\n"
    "slo: 'ttft=100 ms'\n";

Result<Study> service_study(const std::string& text) {
  return parse_config(text, "study.yaml", ConfigSyntax::yaml).and_then([](const ConfigNode& node) {
    return parse_study(node, "study");
  });
}

Outcome service_outcome(const Study& study, std::size_t point) {
  Shared shared;
  return prepare_point(study, point, "1").run(shared);
}

double service_figure(const Outcome& outcome, std::string_view name) {
  const auto* const found = std::find(kServeFigures.begin(), kServeFigures.end(), name);
  const Cell& cell = outcome.figures.at(static_cast<std::size_t>(found - kServeFigures.begin()));
  const auto* const integer = std::get_if<std::int64_t>(&cell);
  return integer == nullptr ? std::get<double>(cell) : static_cast<double>(*integer);
}

TEST(ServeKind, APointIsARunOfTheEngine) {
  const auto study = service_study(kService);
  ASSERT_TRUE(study) << study.error().to_string();
  const Outcome outcome = service_outcome(*study, 0);
  ASSERT_EQ(outcome.error, "");
  requests::Generator generator;
  generator.rate = 8;
  generator.input = *requests::parse_length("uniform(500, 1500)");
  generator.output = {.first = 64};
  generator.count = 40;
  generator.seed = 3;
  const auto machine = *machine::load_machine("dgx-h100");
  const auto run =
      serving::serve(*zoo::load_model("llama-3.1-8b"), machine, *serving::load_engine("vllm@0.20"),
                     requests::generate(generator));
  ASSERT_TRUE(run) << run.error().to_string();
  const serving::Metrics metrics = serving::metrics(*run, machine);
  EXPECT_EQ(service_figure(outcome, "ttft_mean_s"), to_seconds(metrics.ttft.mean));
  EXPECT_EQ(service_figure(outcome, "tpot_p99_s"), to_seconds(metrics.tpot.p99));
  EXPECT_EQ(service_figure(outcome, "output_tokens_per_s"), metrics.output_tokens_per_s);
  EXPECT_EQ(service_figure(outcome, "completed"), 40);
  EXPECT_EQ(service_figure(outcome, "attainment"),
            serving::attainment(*run, *serving::parse_objectives("ttft=100 ms")));
}

TEST(ServeKind, EnginesAndTheirFieldsAreVaried) {
  const auto study = service_study(std::string(kService) +
                                   "vary:\n  engine: [vllm@0.19, trtllm]\n"
                                   "  engine.parallel.tp: [1, 2]\n  requests.rate: [2, 4]\n");
  ASSERT_TRUE(study) << study.error().to_string();
  ASSERT_EQ(study->space.count, 8U);
  EXPECT_EQ(service_figure(service_outcome(*study, 0), "devices"), 1);
  EXPECT_EQ(service_figure(service_outcome(*study, 2), "devices"), 2);
  EXPECT_GT(service_figure(service_outcome(*study, 0), "tpot_mean_s"),
            service_figure(service_outcome(*study, 2), "tpot_mean_s"));
  std::set<std::string> hashes;
  for (std::size_t i = 0; i < study->space.count; ++i) {
    hashes.insert(prepare_point(*study, i, "1").hash);
  }
  EXPECT_EQ(hashes.size(), 8U);
}

TEST(ServeKind, MistakesStandWhereTheStudySaysThem) {
  const auto study = service_study(
      "kind: serve\nmodel: llama-3.1-8b\nmachine: dgx-h100\n"
      "engine: vlm\n"
      "requests: {rate: 0, burstiness: 2, inptu: 5, prefix_groups: 2}\n"
      "slo: fast\n");
  ASSERT_FALSE(study);
  const std::string text = study.error().to_string();
  EXPECT_THAT(text, HasSubstr("study.yaml:4: engine: found 'vlm'"));
  const auto fields = service_study(
      "kind: serve\nmodel: llama-3.1-8b\nmachine: dgx-h100\n"
      "requests: {rate: 0, burstiness: 2, inptu: 5, prefix_groups: 2}\n"
      "slo: fast\n");
  ASSERT_FALSE(fields);
  const std::string all = fields.error().to_string();
  EXPECT_THAT(all, HasSubstr("study.yaml:4: requests.rate: found '0'"));
  EXPECT_THAT(all, HasSubstr("requests.burstiness"));
  EXPECT_THAT(all, HasSubstr("requests.inptu: unknown field (did you mean 'input'?)"));
  EXPECT_THAT(all, HasSubstr("requests.prefix_groups"));
  EXPECT_THAT(all, HasSubstr("study.yaml:5: slo: found 'fast'"));
}

TEST(ServeKind, ARunBeyond106DaysIsRefused) {
  // 16 GFLOP a token at 1 FLOP/s.
  const auto study =
      service_study(std::string(kService) + "vary: {machine.device.peak.bf16: [1 FLOP/s]}\n");
  ASSERT_TRUE(study) << study.error().to_string();
  EXPECT_THAT(service_outcome(*study, 0).error, HasSubstr("takes longer than 106 days"));
}

TEST(ServeKind, KernelsMeasuredOnTheCardReplaceFormulas) {
  const std::string tables = std::string(ORRERY_SOURCE_DIR) + "/tests/study/served/rtx4090/";
  const std::string with = "kernels: '" + tables + "dense.csv," + tables + "per_sequence.csv," +
                           tables + "attention.csv'\n";
  const std::string without =
      "kind: serve\nmodel: llama-3.1-8b\nmachine: rtx-4090\n"
      "requests: {rate: 2, input: 200, output: 20, count: 10}\n";
  const auto measured = service_study(without + with);
  const auto plain = service_study(without);
  ASSERT_TRUE(measured) << measured.error().to_string();
  const Outcome outcome = service_outcome(*measured, 0);
  ASSERT_EQ(outcome.error, "");
  EXPECT_NE(service_figure(outcome, "tpot_mean_s"),
            service_figure(service_outcome(*plain, 0), "tpot_mean_s"));
  EXPECT_NE(prepare_point(*measured, 0, "1").hash, prepare_point(*plain, 0, "1").hash);
}

TEST(ServeKind, AModelThatDoesNotFitIsAResultWithItsReason) {
  const auto study = service_study(
      "kind: serve\nmodel: llama-3-70b\nmachine: dgx-h100\nvary: {engine.parallel.tp: [1, 4]}\n"
      "requests: {count: 3}\n");
  ASSERT_TRUE(study) << study.error().to_string();
  EXPECT_NE(service_outcome(*study, 0).error, "");
  EXPECT_EQ(service_outcome(*study, 1).error, "");
}

}  // namespace
}  // namespace orrery::sweep
