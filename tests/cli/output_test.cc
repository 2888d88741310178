// SPDX-License-Identifier: Apache-2.0
// What a command writes arrives, or the command fails.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "command.h"

namespace orrery::testing {
namespace {

using ::testing::HasSubstr;

/// `orrery ARGUMENTS` where standard output is a full disk.
Outcome on_full_disk(const std::string& arguments) {
  const Folder folder;
  const int raw = std::system(
      (std::string(ORRERY_BINARY) + " " + arguments + " >/dev/full 2>" + (folder / "err")).c_str());
  return {
      .status = WIFEXITED(raw) ? WEXITSTATUS(raw) : -1, .out = {}, .err = content(folder / "err")};
}

TEST(Output, OfEveryKindFailsOnAFullDisk) {
  for (const char* arguments :
       {"--help", "--version", "simulate --help", "list machines", "show machine dgx-h100",
        "collective all_reduce --machine dgx-h100 --devices 8 --json",
        "simulate --model gpt2 --machine dgx-a100-80g --tp 2 --global-batch 2 --json",
        "explain --model gpt2 --machine dgx-a100-80g --tp 2 --global-batch 2 --json"}) {
    const Outcome run = on_full_disk(arguments);
    EXPECT_EQ(run.status, 1) << arguments;
    EXPECT_THAT(run.err, HasSubstr("cannot write to standard output")) << arguments;
  }
}

TEST(Output, NeverEatsAnInputOrAnotherOutput) {
  const Folder folder;
  const std::string table = folder.write("rows.csv", "x,y\n1,2\n2,3\n");
  std::filesystem::create_symlink(table, folder / "link.csv");
  for (const std::string& out : {table, folder / "./rows.csv", folder / "link.csv"}) {
    const Outcome run = orrery("flit --topology mesh:2x2 --messages " + table + " --links " + out);
    EXPECT_EQ(run.status, 2) << out;
    EXPECT_THAT(run.err, HasSubstr("another file than --messages's")) << out;
    EXPECT_EQ(content(table), "x,y\n1,2\n2,3\n");
  }
  const Outcome both = orrery("flit --topology mesh:2x2 --sweep --plot " + (folder / "one") +
                              " --links " + (folder / "one"));
  EXPECT_EQ(both.status, 2);
  EXPECT_THAT(both.err, HasSubstr("another file than"));
}

TEST(Output, IsTriedBeforeTheWork) {
  const Outcome run = orrery("flit --topology mesh:2x2 --links /nowhere/at/all.csv");
  EXPECT_EQ(run.status, 2);
  EXPECT_EQ(run.err,
            "--links: found '/nowhere/at/all.csv', expected a file in a folder that can be "
            "written\n");
}

TEST(Output, GoesNowhereThatNobodyNamed) {
  const Folder folder;
  std::filesystem::create_directory(folder / "docs");
  folder.write("docs/validation.md", "mine");
  const std::string command =
      "cd " + (folder / "") + " && " + ORRERY_BINARY + " validate >out 2>&1";
  ASSERT_EQ(std::system(command.c_str()), 0) << content(folder / "out");
  EXPECT_EQ(content(folder / "docs/validation.md"), "mine");
}

}  // namespace
}  // namespace orrery::testing
