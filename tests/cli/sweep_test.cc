// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "command.h"

namespace orrery::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

constexpr const char* kStudy =
    "model: gpt2\n"
    "machine: dgx-a100-80g\n"
    "plan: {global_batch: 8}\n"
    "vary:\n"
    "  plan.tp: [1, 2, 8]\n"
    "  machine.network.nvlink.bandwidth: [100 GB/s, 300 GB/s]\n";

TEST(SweepCommand, RowsAreCsvJsonTableAndChart) {
  const Folder folder;
  const std::string study = folder.write("study.yaml", kStudy);
  const std::string store = folder / "study.db";
  const Outcome run =
      orrery("sweep " + study + " --store " + store + " --csv " + (folder / "a.csv") +
             " --plot machine.network.nvlink.bandwidth,step_time_s --out " + (folder / "a.svg"));
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(run.out,
            store + ": 6 points run, 0 known, 6 of 6 points there, 2 refused (column error)\n");
  EXPECT_THAT(
      content(folder / "a.csv"),
      StartsWith("point,plan.tp,machine.network.nvlink.bandwidth,total_devices,step_time_s,"));
  EXPECT_THAT(content(folder / "a.csv"), HasSubstr("\n0,1,100 GB/s,1,0."));
  EXPECT_THAT(content(folder / "a.svg"), HasSubstr("machine.network.nvlink.bandwidth (GB/s)"));
  const std::string sql = "'SELECT \"plan.tp\" AS tp, fits FROM rows WHERE error IS NULL'";
  EXPECT_THAT(orrery("query " + store + " " + sql).out, StartsWith("tp  fits\n 1     1\n"));
  const auto json = nlohmann::json::parse(orrery("query " + store + " --json").out);
  EXPECT_EQ(json.at("rows").size(), 6U);
  EXPECT_EQ(json.at("rows")[2].at("plan.tp"), 2);
  EXPECT_TRUE(json.at("rows")[4].at("step_time_s").is_null());
  EXPECT_THAT(std::string(json.at("rows")[4].at("error")),
              StartsWith("tp: found '8'"));  // without its line: the store outlives the file
  EXPECT_FALSE(std::filesystem::exists(store + "-wal"));
}

TEST(SweepCommand, MistakesWriteNothing) {
  const Folder folder;
  const std::string study = folder.write("study.yaml", kStudy);
  const std::string store = " --store " + (folder / "s.db");
  const auto error = [&](const std::string& arguments) {
    const Outcome run = orrery(arguments);
    EXPECT_EQ(run.status, 2) << arguments;
    EXPECT_THAT(run.out, IsEmpty());
    EXPECT_FALSE(std::filesystem::exists(folder / "s.db")) << arguments;
    return run.err;
  };
  EXPECT_THAT(error("sweep" + store), HasSubstr("which study?"));
  EXPECT_THAT(error("sweep " + study), HasSubstr("--store: missing"));
  EXPECT_THAT(error("sweep " + study + store + " --shard 3/3"), HasSubstr("--shard: found '3/3'"));
  EXPECT_THAT(error("sweep " + study + store + " --mpi"), HasSubstr("--mpi: is for processes"));
  EXPECT_THAT(error("sweep " + study + store + " --mpi --slurm 2"), HasSubstr("contradicts --mpi"));
  EXPECT_THAT(error("sweep " + study + store + " --slurm 2 --limit 3"),
              HasSubstr("--limit: contradicts --slurm"));
  EXPECT_THAT(error("sweep " + study + store + " --slurm 0"), HasSubstr("--slurm: found '0'"));
  EXPECT_THAT(error("sweep " + study + store + " --slurm-options x"),
              HasSubstr("goes with --slurm"));
  EXPECT_THAT(error("sweep " + study + store + " --plot a,b"), HasSubstr("--out: missing"));
  EXPECT_THAT(error("sweep --merge" + store), HasSubstr("of which stores?"));
  EXPECT_THAT(error("query " + (folder / "s.db")), HasSubstr("no such file"));
  EXPECT_THAT(
      error("query " + study),
      HasSubstr("expected a store that `orrery sweep` has written (file is not a database"));
}

TEST(SweepCommand, FailsWhereEveryPointIsRefused) {
  const Folder folder;
  const std::string study = folder.write("study.yaml",
                                         "model: gpt2\n"
                                         "machine: dgx-a100-80g\n"
                                         "plan: {global_batch: 8}\n"
                                         "vary: {plan.tp: [5, 7]}\n");
  const Outcome run =
      orrery("sweep " + study + " --store " + (folder / "s.db") + " --csv " + (folder / "s.csv"));
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.err, HasSubstr("all 2 points were refused; the first: tp: found '5'"));
  EXPECT_THAT(content(folder / "s.csv"), HasSubstr("\n1,7,"));
}

TEST(SweepCommand, APlanIsSearchedForEveryPoint) {
  const Folder folder;
  const std::string study =
      folder.write("study.yaml",
                   "kind: plan\n"
                   "model: gpt2\n"
                   "machine: dgx-a100-80g\n"
                   "plan: {global_batch: 16}\n"
                   "devices: 8\n"
                   "only: {pp: [1, 2]}\n"
                   "vary:\n"
                   "  devices: [8, 4]\n"
                   "  machine.network.nvlink.bandwidth: [100 GB/s, 300 GB/s]\n");
  const Outcome run = orrery("sweep " + study + " --store " + (folder / "s.db") + " --json");
  ASSERT_EQ(run.status, 0) << run.err;
  const auto rows = nlohmann::json::parse(run.out).at("rows");
  ASSERT_EQ(rows.size(), 4U);
  const Outcome alone = orrery(
      "plan --model gpt2 --machine dgx-a100-80g --devices 8 --batch 16 --only pp=1,2 --json");
  EXPECT_EQ(rows[1].at("step_time_s"),
            nlohmann::json::parse(alone.out).at("best").at("step_time_s"));
  EXPECT_GE(rows[0].at("step_time_s"), rows[1].at("step_time_s"));
  EXPECT_GT(rows[3].at("step_time_s"), rows[1].at("step_time_s"));  // half of the devices
}

TEST(SweepCommand, WithoutSbatchTheJobArrayIsWritten) {
  const Folder folder;
  const std::string study = folder.write("study.yaml", kStudy);
  const std::string store = folder / "s.db";
  const std::string command = "PATH= " + std::string(ORRERY_BINARY) + " sweep " + study +
                              " --store " + store + " --slurm 4 >" + (folder / "out");
  ASSERT_EQ(std::system(command.c_str()), 0);
  EXPECT_THAT(content(folder / "out"), HasSubstr("No sbatch here"));
  EXPECT_THAT(content(store + ".sbatch"), HasSubstr("#SBATCH --array=0-3"));
  EXPECT_THAT(content(store + ".sbatch"), HasSubstr(" sweep /"));  // whatever folder tasks run in
}

/// examples/sweep as its README says.
TEST(SweepCommand, TheExampleRuns) {
  const Folder folder;
  const std::string out = folder / "out";
  const std::string command = "ORRERY=" + std::string(ORRERY_BINARY) + " " + ORRERY_SOURCE_DIR +
                              "/examples/sweep/run.sh >" + out;
  ASSERT_EQ(std::system(command.c_str()), 0);
  const std::string text = content(out);
  EXPECT_THAT(text, HasSubstr("28 points run, 20 known, 48 of 48"));
  EXPECT_THAT(text, ::testing::ContainsRegex("800 Gbit/s +2 +1 "));
  EXPECT_THAT(text, ::testing::ContainsRegex(" 1 +1 +4 +88\n"));
}

}  // namespace
}  // namespace orrery::testing
