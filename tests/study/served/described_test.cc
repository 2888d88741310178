// SPDX-License-Identifier: Apache-2.0
#include "study/served/described.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/csv.h"
#include "study/served/figure.h"
#include "study/served/nearest.h"
#include "study/served/published.h"
#include "study/served/table.h"

namespace orrery::served {
namespace {

using ::testing::HasSubstr;

TEST(Described, AnEngineItsLoadAndItsMachine) {
  const auto row = described_case(
      "qwen3-14b (awq) | l40s | engine: vllm@0.19; parallel: {tp: 2};  | --input uniform(1, 99) "
      "--output 4 --requests 10 --arrival infinite --max-concurrency 3 | a remark",
      "t.csv:2");
  ASSERT_TRUE(row) << row.error().to_string();
  EXPECT_EQ(row->model, "qwen3-14b");
  EXPECT_EQ(row->machine, "l40s");
  EXPECT_EQ(row->engine.tp, 2);
  EXPECT_EQ(row->engine.weights, graph::DataType::fp4);
  EXPECT_EQ(row->engine.activations, graph::DataType::bf16);
  EXPECT_EQ(row->requests.input, 50);  // the mean
  EXPECT_EQ(row->requests.output, 4);
  EXPECT_EQ(row->requests.count, 10);
  EXPECT_EQ(row->requests.concurrency, 3);
  EXPECT_EQ(row->requests.rate, 0);
}

TEST(Described, ALaunchLineItsLoadAndItsMachine) {
  const auto row = described_case(
      "vllm serve Qwen/Qwen3-235B-A22B-Instruct-2507-FP8 -tp 8 | sharegpt-c4 | dgx-h100",
      "t.csv:2");
  ASSERT_TRUE(row) << row.error().to_string();
  EXPECT_EQ(row->model, "qwen3-235b-a22b");
  EXPECT_EQ(row->engine.tp, 8);
  EXPECT_EQ(row->engine.weights, graph::DataType::fp8);
  EXPECT_EQ(row->requests.concurrency, 4);
  EXPECT_EQ(row->machine, "dgx-h100");
}

TEST(Described, MistakesAreNamed) {
  const auto message = [](const char* text) {
    return described_case(text, "t.csv:2").error().to_string();
  };
  EXPECT_THAT(message("qwen3-14b"), HasSubstr("t.csv:2"));
  EXPECT_THAT(message("nobody-7b | dgx-h100 | engine: vllm@0.19"), HasSubstr("nobody-7b"));
  EXPECT_THAT(message("qwen3-14b | no-machine | engine: vllm@0.19"), HasSubstr("no-machine"));
  EXPECT_THAT(message("vllm serve Qwen/Qwen3-8B | longbench | dgx-h100"), HasSubstr("longbench"));
  EXPECT_THAT(message("qwen3-14b | l40s | engine: vllm@0.19 | --rate x"), HasSubstr("--rate"));
}

TEST(RowCase, RowsNameModelsAsTheHubDoesWithoutAnOwner) {
  const auto name = [](const char* of_row) { return named_model(of_row).value().name; };
  EXPECT_EQ(name("DeepSeek-R1"), "deepseek-v3");
  EXPECT_EQ(name("Qwen3-235B-A22B-FP8"), "qwen3-235b-a22b");
  EXPECT_EQ(name("GLM-5-NVFP4"), "glm-5");
  EXPECT_EQ(name("MiniMaxAI/MiniMax-M2.5"), "minimax-m2");
  EXPECT_EQ(name("Kimi-K2.5"), "kimi-k2.5");
  EXPECT_THAT(named_model("nobody-7b").error().to_string(), HasSubstr("nobody-7b"));
}

TEST(RowCase, RoundsLengthsAndHistogramsMakeTheRequests) {
  const auto row = row_case({{"model", "llama-3.1-8b", ""},
                             {"requests.concurrency", "4", ""},
                             {"requests.rounds", "10", ""},
                             {"requests.input", "1000", ""},
                             {"requests.least", "0.8", ""},
                             {"requests.output_counts", "1 0 3", ""},
                             {"requests.output_low", "0", ""},
                             {"requests.output_high", "300", ""}});
  ASSERT_TRUE(row) << row.error().to_string();
  const auto requests = requests_of(row->requests);
  ASSERT_EQ(requests.size(), 40U);
  int first = 0;
  for (const requests::Request& request : requests) {
    EXPECT_GE(request.input, 800);
    EXPECT_LE(request.input, 1000);
    EXPECT_TRUE(request.output <= 100 || request.output >= 200) << request.output;
    first += request.output <= 100 ? 1 : 0;
  }
  EXPECT_NEAR(first, 10, 1);  // a quarter
}

TEST(RowCase, AHistogramSaysHowManyRequestsThereAre) {
  const auto row = row_case({{"model", "llama-3.1-8b", ""},
                             {"requests.input", "10", ""},
                             {"requests.output_counts", "1 0 3", ""},
                             {"requests.output_low", "0", ""},
                             {"requests.output_high", "300", ""}});
  ASSERT_TRUE(row) << row.error().to_string();
  EXPECT_EQ(requests_of(row->requests).size(), 4U);
}

TEST(RowCase, LastBinsOfAHistogramMayBeLeftOut) {
  // Ten bins of 30 tokens: one answer in the first, three in the third.
  const auto row = row_case({{"requests.output_counts", "1 0 3", ""},
                             {"requests.output_low", "0", ""},
                             {"requests.output_high", "300", ""},
                             {"requests.output_bins", "10", ""}});
  ASSERT_TRUE(row) << row.error().to_string();
  int third = 0;
  for (const requests::Request& request : requests_of(row->requests)) {
    EXPECT_LE(request.output, 90);
    third += request.output >= 60 ? 1 : 0;
  }
  EXPECT_EQ(third, 3);
  const auto fewer = row_case({{"requests.output_counts", "1 0 3", "t.csv:2"},
                               {"requests.output_high", "300", "t.csv:2"},
                               {"requests.output_bins", "2", "t.csv:2"}});
  ASSERT_FALSE(fewer);
  EXPECT_THAT(fewer.error().to_string(), HasSubstr("at least the 3 bins"));
}

/// Two seats; (first, last, tokens) of five requests.
serving::Run run_of_five() {
  serving::Run run;
  run.devices = 2;
  run.max_concurrency = 2;
  for (const auto& [first, last, output] :
       {std::tuple{1, 3, 3}, {1, 4, 4}, {3, 6, 4}, {4, 8, 5}, {6, 9, 4}}) {
    serving::Served request;
    request.first = 1_s * first;
    request.last = 1_s * last;
    request.output = output;
    run.requests.push_back(request);
  }
  for (int second = 0; second < 10; ++second) {  // 10 J each, half of the time
    serving::Sample sample;
    sample.at = 1_s * second;
    sample.drawn = Energy(10.0 * second);
    sample.busy = 500_ms * second;
    run.samples.push_back(sample);
  }
  return run;
}

TEST(Figure, TheSteadyWindowIsThatOfFullSeats) {
  // From the second first token (1 s) to the end of answer 5 - 2 - 1 = 2 (4 s): tokens 2 and 3 of
  // the first two, the first and one more of the third, the first of the fourth.
  serving::Metrics metrics;
  metrics.energy = Energy(1);
  const serving::Run run = run_of_five();
  EXPECT_NEAR(value_of_measure(study::Measure::steady_tokens_per_s, run, metrics, Power(6)),
              8.0 / 3, 1e-9);
  // Two devices, of which each draws 10 J a second and 6 W in the other half.
  EXPECT_NEAR(value_of_measure(study::Measure::power_w, run, metrics, Power(6)), 26, 1e-9);
  EXPECT_NEAR(value_of_measure(study::Measure::j_per_token, run, metrics, Power(6)), 26 / (8.0 / 3),
              1e-9);
}

TEST(Figure, WithoutAWindowARunIsMeasuredAsAWhole) {
  serving::Run run = run_of_five();
  run.max_concurrency = 4;
  serving::Metrics metrics;
  metrics.output_tokens_per_s = 7;
  EXPECT_EQ(value_of_measure(study::Measure::steady_tokens_per_s, run, metrics, Power(6)), 7);
}

TEST(Served, RowsThatTellTwoThingsAreNotAnswered) {
  // 8 seats by 10 ms are 800 tokens a second: the second row says 500, 1.6 times less.
  const auto profile =
      parse_config(
          "kind: serving\ntable: t\ntitle: T\nsource: S\nmachine: dgx-h100\n"
          "csv: t.csv\nkey: [seats]\nplan: {model: llama-3.2-1b}\n"
          "why: {model: chosen}\n"
          "columns: {requests.count: seats, requests.input: n, requests.output: n}\n"
          "agreement: {column: seats, product: [rate, gap], scale: 0.001, within: "
          "1.5}\n"
          "measured: [{column: rate, measure: output_tokens_per_s}]\n",
          "t.yaml", ConfigSyntax::yaml)
          .and_then(study::parse_profile);
  ASSERT_TRUE(profile) << profile.error().to_string();
  const auto table = parse_csv("seats,n,rate,gap\n8,4,800,10\n8,4,500,10\n", "t.csv");
  const auto result = validate_serving(*profile, table.value(), {});
  ASSERT_TRUE(result) << result.error().to_string();
  ASSERT_EQ(result->rows.size(), 2U);
  EXPECT_EQ(result->rows[0].problem, "");
  EXPECT_GT(result->rows[0].predicted, 0);
  EXPECT_THAT(result->rows[1].problem,
              HasSubstr("t.csv:3: seats: found 8, where rate and gap say 5"));
}

/// A log states the weights before it finds no room for a cache: of Llama 2 13B 13,015,864,320
/// parameters in 16 bits, 24.24 GiB, on a card of 24 GB.
TEST(Served, WeightsWithoutRoomForACacheAreAnswered) {
  const auto profile =
      parse_config(
          "kind: serving\ntable: t\ntitle: T\nsource: S\nmachine: rtx-4090\n"
          "csv: t.csv\nkey: [n]\nplan: {model: llama-2-13b}\nwhy: {model: chosen}\n"
          "columns: {requests.count: n, requests.input: n, requests.output: n}\n"
          "measured: [{column: weights, measure: weights_gib}, {column: kv, measure: kv_gib}]\n",
          "t.yaml", ConfigSyntax::yaml)
          .and_then(study::parse_profile);
  ASSERT_TRUE(profile) << profile.error().to_string();
  const auto table = parse_csv("n,weights,kv\n4,24,1\n", "t.csv");
  const auto result = validate_serving(*profile, table.value(), {});
  ASSERT_TRUE(result) << result.error().to_string();
  ASSERT_EQ(result->rows.size(), 2U);
  EXPECT_EQ(result->rows[0].problem, "");
  EXPECT_NEAR(result->rows[0].predicted, 13'015'864'320 * 2.0 / (1 << 30), 0.01);
  EXPECT_THAT(result->rows[1].problem, HasSubstr("t.csv:2"));
}

TEST(RowCase, HistogramsThatAreNoneAreMistakes) {
  const auto row = row_case({{"requests.output_counts", "1 x", "t.csv:2"},
                             {"requests.output_low", "5", "t.csv:2"},
                             {"requests.least", "2", "t.csv:2"}});
  ASSERT_FALSE(row);
  EXPECT_THAT(row.error().to_string(), HasSubstr("output_counts"));
  EXPECT_THAT(row.error().to_string(), HasSubstr("output_high"));
  EXPECT_THAT(row.error().to_string(), HasSubstr("least"));
}

/// A few requests of a published run have its distance 0: model, devices, engine and lengths
/// are the same.
TEST(NearestServed, SlowOfARowOfATableIsARunLikeIt) {
  const auto profile = study::load_profile("vllm_h100_inference_perf").value();
  const auto tasks = published_tasks(profile, load_csv(profile.csv).value()).value();
  const auto machine = machine::load_machine(profile.machine).value();
  const Task& task = tasks.back();
  study::ServedRequests few = task.row.requests;
  few.count = 20;
  const auto parts = parts_of(task.row, machine).value();
  const auto run = serve_case(task.row, parts, requests_of(few)).value();
  const auto model = zoo::load_model(task.row.model).value();
  const auto nearest = nearest_rows(model, run, machine, 1);
  ASSERT_FALSE(nearest.empty());
  for (const study::NearestRow& row : nearest) {
    EXPECT_EQ(row.table, profile.table);
    EXPECT_EQ(row.model, task.row.model);
    EXPECT_EQ(row.devices, run.devices);
    EXPECT_GT(row.published, 0);
    EXPECT_DOUBLE_EQ(row.error, row.predicted / row.published - 1);
  }
  machine::Machine other = machine;
  other.device.name = "of no table";
  EXPECT_TRUE(nearest_rows(model, run, other, 1).empty());
}

}  // namespace
}  // namespace orrery::served
