// SPDX-License-Identifier: Apache-2.0
#include "cli/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "command.h"

namespace orrery::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(Progress, TheRestIsAsSlowAsWhatIsDone) {
  // A quarter took 30 s: three more take 90 s, and 0.5 G events are a quarter of 2 G.
  EXPECT_EQ(progress_line("simulating", {.share = 0.25, .elapsed_s = 30, .events = 500'000'000}),
            "simulating [##########                              ]  25 %, 30 s, about 90 s left, "
            "about 2 G events");
  EXPECT_EQ(progress_line("validating", {.share = 0.5, .elapsed_s = 7200}),
            "validating [####################                    ]  50 %, 2 h, about 2 h left");
}

TEST(Progress, OfNothingDoneNoTimeIsTold) {
  EXPECT_THAT(progress_line("simulating", {.elapsed_s = 3}), Not(HasSubstr("left")));
}

TEST(Progress, WithoutATerminalOnlyLongWorkIsRemarkedOn) {
  EXPECT_EQ(progress_remark("simulating", {.share = 0.01, .elapsed_s = 10, .events = 12'400'000}),
            "simulating: 1 % done in 10 s, about 16 min left, about 1.24 G events");
  EXPECT_EQ(progress_remark("simulating", {.share = 0.5, .elapsed_s = 11}), "");
  EXPECT_EQ(progress_remark("simulating", {.share = 0.01, .elapsed_s = 9}), "");
}

TEST(Progress, OfACommandIsOnATerminalAndNowhereElse) {
  // So many microbatches without shortcuts take some seconds. `script` gives it a terminal.
#ifdef ORRERY_SANITIZED
  const std::string batch = "40000";
#else
  const std::string batch = "60000";
#endif
  const std::string step =
      "simulate --model gpt2 --machine dgx-a100-80g --tp 4 --no-shortcuts --global-batch " + batch;
  const testing::Outcome quiet = testing::orrery(step);
  EXPECT_EQ(quiet.status, 0);
  EXPECT_EQ(quiet.err, "");
  if (std::system("command -v script >/dev/null 2>&1") != 0) {
    GTEST_SKIP() << "no `script` here";
  }
  const testing::Folder folder;
  const std::string command = "script --quiet --return --command '" + std::string(ORRERY_BINARY) +
                              " " + step + "' " + (folder / "typed") +
                              " >/dev/null 2>&1 </dev/null";
  EXPECT_EQ(std::system(command.c_str()), 0);
  EXPECT_THAT(testing::content(folder / "typed"),
              AllOf(HasSubstr("simulating ["), HasSubstr(" left"), HasSubstr(" events")));
}

#ifndef ORRERY_SANITIZED  // whose shadow memory is beyond any such limit
TEST(Memory, ItsEndIsSaid) {
  // 128 ports a switch are 128^3 / 4 = 524,288 hosts: their links take more than 150 MB.
  const testing::Folder folder;
  const std::string command = "ulimit -v 150000; exec " + std::string(ORRERY_BINARY) +
                              " show topology fat_tree:k=128 >/dev/null 2>" + (folder / "err");
  const int raw = std::system(command.c_str());
  ASSERT_TRUE(WIFEXITED(raw));
  EXPECT_EQ(WEXITSTATUS(raw), 1);
  EXPECT_EQ(testing::content(folder / "err"), "orrery: out of memory\n");
}
#endif

}  // namespace
}  // namespace orrery::cli
