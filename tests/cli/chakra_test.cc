// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

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
