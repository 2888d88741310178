// SPDX-License-Identifier: Apache-2.0
#include "study/served/described.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "study/served/nearest.h"
#include "study/served/published.h"

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
  const auto run = serve_case(task.row, machine, requests_of(few)).value();
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
