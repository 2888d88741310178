// SPDX-License-Identifier: Apache-2.0
/// Traces that `orrery simulate` writes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "command.h"

namespace orrery::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// A run of milliseconds on eight devices, with more arguments.
std::string traced(const std::string& arguments) {
  return "simulate --model gpt2 --machine dgx-a100-80g --tp 2 --pp 2 --dp 2 --global-batch 16 " +
         arguments;
}

TEST(SimulatedTrace, TraceIsAFileOfItsOwn) {
  const Folder folder;
  const std::string path = folder / "step.json";
  const Outcome run = orrery(traced("--trace " + path));
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("Step time"));
  EXPECT_GT(nlohmann::json::parse(content(path))["traceEvents"].size(), 100U);
}

TEST(SimulatedTrace, ALargeTraceIsOnlyWrittenWhenAsked) {
  const Folder folder;
  const std::string path = folder / "step.json";
  const Outcome refused = orrery(traced("--trace " + path + " --trace-limit '10 kB' </dev/null"));
  EXPECT_EQ(refused.status, 1);
  EXPECT_THAT(refused.out, HasSubstr("Step time"));  // the result is not lost
  EXPECT_THAT(refused.err, AllOf(HasSubstr("step.json: the trace takes "),
                                 HasSubstr("more than 10000 bytes, and was not written"),
                                 HasSubstr("--trace-limit")));
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_EQ(orrery(traced("--trace " + path + " --trace-limit 1GB </dev/null")).status, 0);
  EXPECT_TRUE(std::filesystem::exists(path));
  EXPECT_THAT(orrery(traced("--trace-limit 1GB")).err, HasSubstr("goes with --trace"));
  EXPECT_THAT(orrery(traced("--trace " + path + " --trace-limit big")).err,
              HasSubstr("--trace-limit: found 'big'"));
}

/// `script` gives the command a terminal and types for it.
TEST(SimulatedTrace, AtATerminalALargeTraceIsAskedFor) {
  if (std::system("command -v script >/dev/null") != 0) {
    GTEST_SKIP() << "needs util-linux's script";
  }
  const Folder folder;
  const auto answer = [&](const std::string& text, const std::string& path) {
    const std::string command =
        std::string(ORRERY_BINARY) + " " + traced("--trace " + path + " --trace-limit 10kB");
    const std::string screen = folder / "screen";
    std::system(("(sleep 2; echo " + text + "; sleep 1) | script -qec '" + command +
                 "' /dev/null >" + screen)
                    .c_str());
    EXPECT_THAT(content(screen), HasSubstr("Write it? [y/N]"));
    return std::filesystem::exists(path);
  };
  EXPECT_TRUE(answer("y", folder / "yes.json"));
  EXPECT_FALSE(answer("n", folder / "no.json"));
}

TEST(SimulatedTrace, TraceThatCannotBeWrittenLeavesStandardOutputEmpty) {
  const Outcome run = orrery(traced("--json --trace /nonexistent/step.json"));
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.out, IsEmpty());
  EXPECT_THAT(run.err, HasSubstr("/nonexistent/step.json"));
}

}  // namespace
}  // namespace orrery::testing
