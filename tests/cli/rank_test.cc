// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "command.h"

namespace orrery::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const std::string kHand = std::string(ORRERY_SOURCE_DIR) + "/examples/rank/hand";

TEST(Rank, PutsProxiesAndTheSimulatedStepSideBySide) {
  const Folder folder;
  const std::string arguments = "rank " + kHand +
                                " --machine dgx-a100-80g --samples 6 --seeds 2 "
                                "--json --plot " +
                                folder / "r.svg";
  const Outcome outcome = orrery(arguments);
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const auto json = nlohmann::json::parse(outcome.out);
  ASSERT_EQ(json.at("architectures").size(), 4U);
  for (const auto& one : json.at("architectures")) {
    // At most a sign of each sample for every weight of a matrix.
    EXPECT_LE(one.at("gradsign_sum").get<double>(), 6 * one.at("parameters").get<double>());
    EXPECT_GT(one.at("gradsign_sum").get<double>(), 0);
    EXPECT_GT(one.at("step_time_s").get<double>(), 0);
    EXPECT_GT(one.at("energy_j").get<double>(), 0);
  }
  // mlp: 192 x 64 + 64 + 64 x 64 + 64 + 64 x 10 + 10.
  EXPECT_EQ(json.at("architectures")[1].at("name"), "mlp");
  EXPECT_EQ(json.at("architectures")[1].at("parameters"), 17162);
  EXPECT_EQ(json.at("correlations").size(), 6U);
  EXPECT_FALSE(json.at("pareto").empty());
  EXPECT_THAT(content(folder / "r.svg"), HasSubstr("<svg"));
  EXPECT_EQ(orrery(arguments + " --threads 1").out, outcome.out);
}

TEST(Rank, TrainsAndReadsSamples) {
  const Folder folder;
  std::string rows = "label,a,b\n";
  for (int i = 0; i < 60; ++i) {
    rows += i % 2 == 0 ? "0,1,0\n" : "1,0,1\n";
  }
  const std::string samples = folder.write("s.csv", rows);
  folder.write("net.yaml", "{input: [2], classes: 2, layers: [{kind: linear, features: 2}]}");
  const std::string net = folder / "net.yaml";
  const Outcome outcome =
      orrery("rank " + net + " --file " + samples + " --train 30 --seeds 1 --json");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const auto json = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(json.at("architectures")[0].at("accuracy"), 1);
  EXPECT_EQ(json.at("architectures")[0].at("trained"), true);
  EXPECT_TRUE(json.at("correlations")[0].at("spearman").is_null());  // of one network
}

TEST(Rank, NamesEveryMistake) {
  const Folder folder;
  const std::string bad =
      folder.write("bad.yaml", "{input: [2], classes: 2, layers: [{kind: lin}]}");
  const Outcome outcome = orrery("rank " + bad + " --samples 0 --noise 1000 --batch 8 --machin x");
  EXPECT_EQ(outcome.status, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err,
              AllOf(HasSubstr("bad.yaml:1"), HasSubstr("found 'lin'"), HasSubstr("--samples"),
                    HasSubstr("--noise"), HasSubstr("--machin")));
  EXPECT_THAT(orrery("rank").err, HasSubstr("DIR: missing"));
  EXPECT_THAT(orrery("rank " + kHand + " --devices 2").err, HasSubstr("give --machine"));
  EXPECT_THAT(orrery("rank " + kHand + " --machine dgx-h100 --batch 3 --devices 2").err,
              HasSubstr("multiple of the 2 devices"));
  EXPECT_THAT(orrery("rank " + kHand + " --file " + bad).err, HasSubstr("bad.yaml"));
}

TEST(Rank, ItsExampleRuns) {
  const Folder folder;
  const std::string command = "COUNT=6 EPOCHS=1 ORRERY=" + std::string(ORRERY_BINARY) + " " +
                              ORRERY_SOURCE_DIR + "/examples/rank/run.sh >" + folder / "out";
  ASSERT_EQ(std::system(command.c_str()), 0);
  EXPECT_THAT(content(folder / "out"), AllOf(HasSubstr("accuracy"), HasSubstr("6 cells"),
                                             HasSubstr("Rank correlations over 2 seeds")));
}

}  // namespace
}  // namespace orrery::testing
