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
  const std::string command = "cd " + (folder / "") + " && " + ORRERY_BINARY +
                              " validate --table korthikanti2022_table5 >out 2>&1";
  ASSERT_EQ(std::system(command.c_str()), 0) << content(folder / "out");
  EXPECT_EQ(content(folder / "docs/validation.md"), "mine");
}

TEST(Output, ThatIsNotWrittenDoesNotCostTheResult) {
  const Outcome run = orrery(
      "simulate --model gpt2 --machine dgx-a100-80g --tp 2 --global-batch 2 --json "
      "--trace /dev/full");
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.out, HasSubstr("\"step_time_s\""));
  EXPECT_THAT(run.err, HasSubstr("/dev/full: cannot be written"));
}

TEST(Output, OfWorkThatASignalEndsIsWhatThereIs) {
  const Folder folder;
  std::string sizes;
  for (int size = 1; size <= 400; ++size) {
    sizes += (size > 1 ? ", " : "") + std::to_string(size) + " KiB";
  }
  const std::string study =
      folder.write("s.yaml",
                   "kind: collective\nmachine: dgx-h100\ncollective: {kind: all_reduce}\nvary: "
                   "{collective.size: [" +
                       sizes + "], collective.devices: [2, 4, 8, 16]}\n");
  for (const auto& [signal, status] : {std::pair("INT", 130), std::pair("TERM", 143)}) {
    const std::string store = folder / (std::string(signal) + ".db");
    const std::string out = folder / "out";
    const Outcome run =
        orrery("sweep " + study + " --threads 1 --store " + store + " >" + out + " & until [ -e " +
               store + " ]; do sleep 0.02; done; kill -" + signal + " $!; wait $!");
    EXPECT_EQ(run.status, status) << run.err;
    EXPECT_THAT(content(out), HasSubstr(" of 1600 points there")) << signal;
  }
}

/// The signal comes some time after the command has begun to catch it, which it does before it
/// reads its requests.
TEST(Output, OfServePlanAndValidateThatASignalEndsIsWhatThereIs) {
  const Folder folder;
  const std::string out = folder / "out";
  const std::string serve =
      "serve --model llama-3.2-1b --machine dgx-h100 --rate 5 --num-prompts 200000 --no-skip";
  for (const std::string& command :
       {serve,
        std::string("plan --model llama-3.1-405b --machine dgx-h100 --devices 16384 --batch "
                    "2048"),
        std::string("validate --table vtrain_a100_single")}) {
    for (const auto& [signal, status] : {std::pair("INT", 130), std::pair("TERM", 143)}) {
      const Outcome run =
          orrery(command + " >" + out +
                 " & for i in $(seq 1000); do grep -q "
                 "'SigCgt:.*[2367abef]$' /proc/$!/status && break; "
                 "sleep 0.02; done; sleep " +
                 (command == serve ? "2" : "0.1") + "; kill -" + signal + " $!; wait $!");
      EXPECT_EQ(run.status, status) << command << run.err;
      if (command == serve) {
        EXPECT_THAT(content(out), HasSubstr(" of 200000 requests are answered")) << signal;
      }
    }
  }
}

TEST(Output, OfServeThatASignalEndsBeforeItsRequestsSaysSo) {
  const Folder folder;
  const std::string err = folder / "err";
  const Outcome run = orrery(
      "serve --model llama-3.2-1b --machine dgx-h100 --rate 5 --num-prompts 1000000 2>" + err +
      " & for i in $(seq 1000); do grep -q 'SigCgt:.*[2367abef]$' /proc/$!/status && break; sleep "
      "0.02; done; kill -TERM $!; wait $!");
  EXPECT_EQ(run.status, 143);
  EXPECT_THAT(content(err), HasSubstr("ended before a request was answered"));
}

TEST(Output, SaysWhatMadeIt) {
  // A description, which other commands read, stays as it is.
  const Folder folder;
  const std::string step = " --machine dgx-a100-80g --tp 2 --global-batch 2 --json";
  const std::string other = folder.write(
      "gpt.json", std::string(R"({"model_type": "gpt2", "n_embd": 768, "n_layer": 12, )") +
                      R"("n_head": 12, "n_positions": 1024, "vocab_size": 50257})");
  const std::string shipped = orrery("simulate --model gpt2" + step).out;
  EXPECT_THAT(shipped, HasSubstr("\"flag\": \"--model\""));
  folder.write("a.json", shipped);
  folder.write("b.json", orrery("simulate --model " + other + step).out);
  const Outcome compared = orrery("compare " + (folder / "a.json") + " " + (folder / "b.json"));
  EXPECT_THAT(compared.out, HasSubstr("orrery.input --model"));
  EXPECT_THAT(compared.out, ::testing::Not(HasSubstr("orrery.input --machine")));
  EXPECT_THAT(orrery("show model gpt2 --json").out, ::testing::Not(HasSubstr("\"orrery\"")));
}

}  // namespace
}  // namespace orrery::testing
