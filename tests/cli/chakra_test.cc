// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <ostream>

#include "command.h"

namespace orrery::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kStep =
    "export chakra --model gpt2 --machine dgx-a100-80g --tp 2 --pp 2 --dp 2 --global-batch 8 ";

TEST(ExportChakra, EveryRankHasAFileAndStagesShareTheirProgram) {
  const Folder folder;
  const Outcome run = orrery(std::string(kStep) + "--json --output " + (folder / "new/t"));
  ASSERT_EQ(run.status, 0) << run.err;
  const auto report = nlohmann::json::parse(run.out);
  EXPECT_EQ(report["ranks"], 8);
  EXPECT_EQ(report["programs"], 2);
  EXPECT_EQ(report["groups"], 4 * 4);  // pairs on tp, dp, pp (gradient norm), tied embedding
  for (int rank = 0; rank < 8; ++rank) {
    // The length of the GlobalMetadata, its version.
    EXPECT_EQ(content(folder / ("new/t." + std::to_string(rank) + ".et")).substr(0, 8),
              "\x07\x0a\x05"
              "0.0.4");
  }
  const auto groups = nlohmann::json::parse(content(folder / "new/t.groups.json"));
  EXPECT_EQ(groups["1"], (std::vector<int>{0, 1}));
}

TEST(ExportChakra, WhatIsMissingIsSaidAtOnce) {
  const Outcome run = orrery("export chakra --most-files many");
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.out, IsEmpty());
  EXPECT_THAT(run.err, HasSubstr("--model: chakra needs one"));
  EXPECT_THAT(run.err, HasSubstr("--output: chakra needs one"));
  EXPECT_THAT(run.err, HasSubstr("--most-files: found 'many'"));
  EXPECT_THAT(orrery("export megatron --output x").err, HasSubstr("--output: is for chakra"));
}

TEST(ExportChakra, MoreFilesThanAskedForAreRefused) {
  const Folder folder;
  const Outcome run = orrery(std::string(kStep) + "--most-files 7 --output " + (folder / "t"));
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.err, HasSubstr("--most-files: found '7', expected at least 8"));
  EXPECT_FALSE(std::filesystem::exists(folder / "t.0.et"));
}

/// Seconds of the step; NaN when it does not run.
double step_time(const std::string& arguments) {
  const Outcome run = orrery("simulate --json " + arguments);
  EXPECT_EQ(run.status, 0) << arguments << "\n" << run.err;
  return run.status == 0 ? nlohmann::json::parse(run.out)["step_time_s"].get<double>()
                         : std::numeric_limits<double>::quiet_NaN();
}

struct Step {
  std::string machine;
  std::string plan;
};
void PrintTo(const Step& step, std::ostream* out) {
  *out << step.plan << " on " << step.machine;
}

class ReadBack : public ::testing::TestWithParam<Step> {};

TEST_P(ReadBack, AStepTakesAsLongButForRoundingToMicroseconds) {
  // The slowdown of kernels beside communication is part of the trace: without it the first of
  // these was 1.1 % short.
  const std::string machine = " --machine " + GetParam().machine;
  const Folder folder;
  const Outcome written =
      orrery("export chakra " + GetParam().plan + machine + " --output " + (folder / "t"));
  ASSERT_EQ(written.status, 0) << written.err;
  const double own = step_time(GetParam().plan + machine + " --allow-oom");
  const double read =
      step_time("--chakra " + (folder / "t") + machine + " --groups " + (folder / "t.groups.json"));
  EXPECT_NEAR(read / own, 1, 0.001) << own << " s, read back " << read << " s";
}

INSTANTIATE_TEST_SUITE_P(
    Plans, ReadBack,
    ::testing::Values(
        Step{"dgx-h100",
             "--model llama-3-8b --tp 4 --pp 2 --dp 2 --global-batch 16 --sequence 2048"},
        Step{"dgx-a100-80g",
             "--model llama-3-8b --tp 2 --dp 8 --zero 3 --overlap-grad-reduce"
             " --overlap-param-gather --global-batch 16 --sequence 2048"},
        Step{"dgx-a100-80g",
             "--model gpt-22b --tp 4 --pp 4 --schedule interleaved --chunks 2 --overlap-p2p"
             " --global-batch 16"},
        Step{"dgx-h100",
             "--model mixtral-8x7b --tp 2 --dp 8 --ep 4 --sequence-parallel --global-batch 16"
             " --sequence 2048"},
        Step{"dgx-b200",
             "--model qwen3-30b-a3b --pp 4 --dp 4 --ep 2 --schedule dualpipe --overlap-ep"
             " --global-batch 64 --sequence 2048"},
        Step{"tpu-v4",
             "--model llama-3-8b --tp 4 --dp 4 --cp 2 --cp-exchange all_gather --attention flash"
             " --recompute full --global-batch 8 --sequence 4096"},
        Step{"dgx-h100",
             "--model llama-3-8b --dp 8 --zero 2 --offload-activations 0.5 --offload-optimizer cpu"
             " --global-batch 16 --sequence 2048"}));

TEST(ExportChakra, TheExampleRunsItsTracesOnAstra) {
  const Folder folder;
  const std::string out = folder / "out";
  const std::string command = "ORRERY=" + std::string(ORRERY_BINARY) + " " + ORRERY_SOURCE_DIR +
                              "/examples/chakra_export/run.sh >" + out + " 2>&1";
  ASSERT_EQ(std::system(command.c_str()), 0) << content(out);
  const std::string text = content(out);
  for (int rank = 0; rank < 8; ++rank) {
    EXPECT_THAT(text, HasSubstr("sys[" + std::to_string(rank) + "] finished, "));
  }
  EXPECT_THAT(text, HasSubstr("2264 nodes as 566 of 2 programs"));
}

}  // namespace
}  // namespace orrery::testing
