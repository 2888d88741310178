// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "command.h"

namespace orrery::testing {
namespace {

using ::testing::HasSubstr;

/// The lines "  orrery ARGUMENTS" of a help text, those that go on joined, without "orrery".
std::vector<std::string> examples_of(const std::string& help) {
  std::vector<std::string> examples;
  const std::string joined = std::regex_replace(help, std::regex(R"(\\\n\s*)"), "");
  std::istringstream lines(joined);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("  orrery ")) {
      examples.push_back(line.substr(9));
    }
  }
  return examples;
}

/// Returns whether the example needs nothing that the reader has to bring: no "...", no file of his
/// own. `explain`, the simulated `collective` and a planner that searches many times take seconds
/// each.
bool stands_alone(const std::string& example) {
  static const std::regex needs(
      R"(\.\.\.|\./|traces/|\b\w+\.(csv|json|yaml|sh|toml|txt)\b|docs/|^explain|^plan.* --(table|explain|vary)|--network fifo$)");
  return !std::regex_search(std::regex_replace(example, std::regex(R"(examples/\S+)"), ""), needs);
}

/// Returns how many examples of these commands' help texts were run.
int examples_run(const std::vector<std::string>& commands) {
  const Folder folder;
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(ORRERY_SOURCE_DIR);  // examples/ are there
  int run = 0;
  for (const std::string& command : commands) {
    for (std::string example : examples_of(orrery(command + " --help").out)) {
      example = std::regex_replace(example, std::regex(" > \\S+$"), "");
      // What it writes goes into a folder that is gone afterwards.
      for (const std::string flag : {"--output ", "--html "}) {
        example =
            std::regex_replace(example, std::regex(flag + "(trace/)?(?=\\w)"), flag + folder / "");
      }
      if (stands_alone(example)) {
        const Outcome outcome = orrery(example);
        const bool loses =
            outcome.err.starts_with("not stated: ");  // an export says so, and ends with 1
        EXPECT_EQ(outcome.status, loses ? 1 : 0) << example << "\n" << outcome.err;
        ++run;
      }
    }
  }
  std::filesystem::current_path(before);
  return run;
}

TEST(Help, ItsExamplesRun) {
  EXPECT_GE(examples_run({"", "simulate", "compare", "collective", "gemm", "attention", "list",
                          "show", "export", "import", "fuse", "calibrate", "calculon"}),
            14);
}

TEST(Help, SlowExamplesOfSearchesRun) {
  EXPECT_GE(examples_run({"estimate", "plan", "astra", "spmd"}), 4);
}

TEST(CommandLine, AloneItSaysWhatToAsk) {
  const Outcome alone = orrery("");
  EXPECT_EQ(alone.status, 2);
  for (const char* command : {"simulate", "plan", "serve", "list models"}) {
    EXPECT_THAT(alone.err, HasSubstr(std::string("\n    orrery ") + command));
  }
  EXPECT_THAT(alone.err, HasSubstr("orrery machine detect"));
}

TEST(CommandLine, MachinesAreDetectedFromRecordedOutputs) {
  const Folder folder;
  const std::string recorded = "machine detect --from " + folder / "" + " ";
  const Outcome nothing = orrery(recorded);
  EXPECT_EQ(nothing.status, 2);
  EXPECT_THAT(nothing.err, HasSubstr("neither nvidia-smi nor rocm-smi names an accelerator"));
  std::string devices;
  for (int i = 0; i < 8; ++i) {
    devices += "NVIDIA H200, 143771, 700.00\n";
  }
  folder.write("nvidia-smi.csv", devices);
  const std::string file = folder / "mine.yaml";
  const Outcome written = orrery(recorded + "--output " + file);
  ASSERT_EQ(written.status, 0) << written.err;
  EXPECT_THAT(written.out, HasSubstr("mine (like dgx-h200)"));
  const Outcome shown = orrery("show machine " + file);
  EXPECT_EQ(shown.status, 0) << shown.err;
  EXPECT_THAT(orrery("machine find").err, HasSubstr("machine: found 'find', expected detect"));
}

TEST(CommandLine, EveryOptionWithoutItsValueIsNamed) {
  // The word after it is an option of its own, or there is none.
  EXPECT_EQ(orrery("simulate --model --machine dgx-h100 --plan").err,
            "--model: missing; expected NAME|FILE after it\n"
            "--plan: missing; expected NAME|FILE after it\n");
}

TEST(CommandLine, AMistakeOfAnAliasNamesItAsItWasGiven) {
  const std::string err =
      orrery(
          "simulate --model gpt2 --machine dgx-a100-80g --tensor-parallel-degree two "
          "--seq_len long --zero-stage seven")
          .err;
  EXPECT_EQ(err,
            "--tensor-parallel-degree: found 'two', expected a whole number\n"
            "--seq-len: found 'long', expected a whole number\n"
            "--zero-stage: found 'seven', expected a whole number\n");
}

TEST(CommandLine, NamesThatAreNotKnownAreMistakesOfTheirFlag) {
  EXPECT_THAT(orrery("compare A B").err, HasSubstr("compare: found 'A', expected a file or one"));
  EXPECT_THAT(orrery("validate --table A").err, HasSubstr("--table: found 'A'"));
  EXPECT_THAT(orrery("plot").err, HasSubstr("FILE: missing; expected a table with a header"));
}

TEST(CommandLine, WhatAKindDoesNotHaveIsRefused) {
  EXPECT_THAT(orrery("show engine vllm --tp 4").err, HasSubstr("--tp: contradicts show engine"));
  EXPECT_THAT(orrery("show machine dgx-h100 --svg").err, HasSubstr("--svg: goes with topology"));
  EXPECT_THAT(orrery("show model gpt2 --yaml").err, HasSubstr("--yaml: goes with machine"));
}

}  // namespace
}  // namespace orrery::testing
