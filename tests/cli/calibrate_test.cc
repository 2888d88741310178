// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "command.h"

namespace orrery::testing {
namespace {

using ::testing::HasSubstr;

constexpr const char* kMeasured =
    "dtype,m,n,k,latency_us\nbf16,4096,4096,4096,700\nbf16,128,8192,1024,20\nbf16,8,1024,1024,9\n";

TEST(CalibrateCommand, WritesAMachineThatCanBeUsed) {
  const Folder folder;
  const std::string csv = folder.write("mine.csv", kMeasured);
  const std::string machine = folder / "mine.yaml";
  const Outcome outcome =
      orrery("calibrate gemm " + csv + " --machine dgx-a100-80g --output " + machine);
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("gemm_peak_share"));
  EXPECT_THAT(content(machine), HasSubstr("\"measured: mine.csv\""));
  EXPECT_EQ(orrery("show machine " + machine).status, 0);
}

/// examples/calibrate_gemm as its README says.
TEST(CalibrateCommand, TheExampleRuns) {
  const Folder folder;
  const std::string out = folder / "out";
  const std::string command = "ORRERY=" + std::string(ORRERY_BINARY) + " " + ORRERY_SOURCE_DIR +
                              "/examples/calibrate_gemm/run.sh >" + out;
  ASSERT_EQ(std::system(command.c_str()), 0);
  const std::string text = content(out);
  EXPECT_THAT(text, HasSubstr("bf16 GEMMs"));
  EXPECT_THAT(text, HasSubstr("and a cast of A"));
  EXPECT_THAT(text, HasSubstr("# fitted:\nStep time"));
}

TEST(CalibrateCommand, AMistakeWritesNothing) {
  const Folder folder;
  const std::string csv = folder.write("bad.csv", "m,n,k,latency_us\n1,2,3,x\n");
  const std::string machine = folder / "mine.yaml";
  const Outcome outcome = orrery("calibrate gemm " + csv + " --machine dgx-a100-80g -o " + machine);
  EXPECT_EQ(outcome.status, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, HasSubstr("bad.csv:2: latency_us: found 'x'"));
  EXPECT_FALSE(std::filesystem::exists(machine));
}

TEST(CalibrateCommand, AllThatIsMissingIsSaidAtOnce) {
  const Outcome outcome = orrery("calibrate gem");
  EXPECT_EQ(outcome.status, 2);
  EXPECT_THAT(outcome.err, HasSubstr("found 'gem'"));
  EXPECT_THAT(outcome.err, HasSubstr("FILE"));
  EXPECT_THAT(outcome.err, HasSubstr("--machine"));
}

TEST(CalibrateCommand, JsonHoldsTheSameFit) {
  const Folder folder;
  const std::string csv = folder.write("mine.csv", kMeasured);
  const Outcome outcome = orrery("calibrate gemm " + csv + " --machine dgx-a100-80g --json");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("\"name\": \"gemm_launch\""));
  EXPECT_THAT(outcome.out, HasSubstr("\"shapes\": 3"));
}

}  // namespace
}  // namespace orrery::testing
