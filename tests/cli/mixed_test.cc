// SPDX-License-Identifier: Apache-2.0
// Machines of several sorts of devices, as a user has them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "command.h"

namespace orrery::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const std::string kCluster =
    " --machine " + std::string(ORRERY_SOURCE_DIR) + "/examples/mixed_devices/cluster.yaml";

/// examples/mixed_devices as its README says: in proportion all devices are faster than the H100
/// alone, evenly they are slower.
TEST(MixedDevices, TheExampleHasWhatItsReadmeSays) {
  const Folder folder;
  const std::string out = folder / "out";
  const std::string command = "ORRERY=" + std::string(ORRERY_BINARY) + " " + ORRERY_SOURCE_DIR +
                              "/examples/mixed_devices/run.sh >" + out;
  ASSERT_EQ(std::system(command.c_str()), 0);
  std::map<std::string, double> seconds;
  std::istringstream lines(content(out));
  for (std::string line; std::getline(lines, line);) {
    if (line.size() > 20 && line.ends_with(" s")) {
      seconds[line.substr(2, line.find("  ", 2) - 2)] = std::atof(line.substr(19).c_str());
    }
  }
  EXPECT_LT(seconds.at("the H100 alone"), seconds.at("8 each"));
  EXPECT_THAT(content(out), AllOf(HasSubstr("batch_shares auto 1.748308592097 s"),
                                  HasSubstr("stage_layers auto 1.690716131355 s"),
                                  HasSubstr("batch_shares: 3*16,1*16"), HasSubstr("h100,a100")));
}

TEST(MixedDevices, TheSavedPlanOfASearchRunsAsItWasSimulated) {
  const Folder folder;
  const std::string plan = folder / "plan.yaml";
  const Outcome search = orrery("plan --model gpt2" + kCluster +
                                " --devices 32 --batch 256 --sequence 1024 --only tp=1,2 --only "
                                "pp=1,2 --only cp=1 --top 1 --estimates 60 --json --save " +
                                plan);
  ASSERT_EQ(search.status, 0) << search.err;
  const auto best = nlohmann::json::parse(search.out).at("best");
  const Outcome run = orrery("simulate --model gpt2" + kCluster + " --json --plan " + plan);
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(nlohmann::json::parse(run.out).at("step_time_s"), best.at("step_time_s"));
  const Outcome estimate = orrery("estimate --model gpt2" + kCluster + " --json --plan " + plan);
  ASSERT_EQ(estimate.status, 0) << estimate.err;
  EXPECT_LE(nlohmann::json::parse(estimate.out).at("lower_bound_s"), best.at("step_time_s"));
}

TEST(MixedDevices, OtherCommandsAndQuestionsSayThatTheyKnowOneSort) {
  EXPECT_THAT(orrery("serve --model llama-3-8b" + kCluster).err,
              HasSubstr("parts: found 'h100,a100', expected a machine of one sort of devices"));
  EXPECT_THAT(orrery("home --model llama-2-7b" + kCluster).err, HasSubstr("one sort of devices"));
  EXPECT_THAT(orrery("plan --model gpt2" + kCluster +
                     " --devices 32 --batch 256 --objective tokens_per_joule")
                  .err,
              HasSubstr("--objective tokens_per_joule does not know several"));
  EXPECT_THAT(orrery("plan --model gpt2" + kCluster +
                     " --devices 32 --batch 256 --max-memory 40GiB --vary devices=16,32")
                  .err,
              HasSubstr("--max-memory: is of one device"));
  EXPECT_THAT(
      orrery("plan --model gpt2 --machine dgx-h100 --batch 256 --vary parts.h100.devices=8").err,
      HasSubstr("--vary: found 'parts', expected a field of dgx-h100: it has no parts"));
  EXPECT_THAT(
      orrery("simulate --model gpt2 --machine dgx-h100 --dp 2 --global-batch 8 --parts a").err,
      HasSubstr("--parts: found 'a', expected nothing: all devices of dgx-h100 are alike"));
  EXPECT_THAT(orrery("simulate --model gpt2 --machine dgx-h100 --dp 2 --global-batch 8 "
                     "--batch-shares 5,4")
                  .err,
              HasSubstr("--batch-shares: found '5,4', expected a sum of global_batch"));
}

}  // namespace
}  // namespace orrery::testing
