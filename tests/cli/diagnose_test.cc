// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "command.h"

namespace orrery::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

/// Ranks 0 and 2 wait for rank 1 since half a minute and more.
std::string hang(const Folder& folder) {
  std::string text = R"({"type": "communicator", "name": "world", "ranks": [0, 1, 2]})";
  for (const char* rank : {"0", "2"}) {
    text += std::string("\n{\"type\": \"collective\", \"communicator\": \"world\", \"rank\": ") +
            rank + R"(, "sequence": 4, "operation": "all_reduce", "bytes": 64, "entered_s": 10})";
  }
  const std::string file = folder / "telemetry.jsonl";
  EXPECT_TRUE(write_file(file, text + "\n{\"type\": \"snapshot\", \"rank\": 2, \"time_s\": 50}\n"));
  return file;
}

TEST(Diagnose, SaysWhoIsAtFault) {
  const Folder folder;
  const std::string file = hang(folder);
  const Outcome text = orrery("diagnose " + file);
  EXPECT_EQ(text.status, 0);
  EXPECT_THAT(text.out, AllOf(HasSubstr("missing_rank: rank 1"),
                              HasSubstr("2 ranks wait in all_reduce 4 of world for 40 s by now")));
  const auto json = nlohmann::json::parse(orrery("diagnose --json " + file).out);
  EXPECT_EQ(json.at("findings").at(0).at("syndrome"), "missing_rank");
  EXPECT_EQ(json.at("findings").at(0).at("ranks"), nlohmann::json::array({1}));
  EXPECT_EQ(json.at("findings").at(0).at("lost_s"), 40);
  EXPECT_THAT(orrery("diagnose --timeout 1min " + file).out, HasSubstr("nothing is wrong"));
}

TEST(Diagnose, FindsALostNodeOfASimulatedJobOnEveryNetwork) {
  // Node 1 (ranks 8 to 15) goes in the middle of a collective of its own: nothing is recorded of it
  // from then on, so that who waits for it blames it.
  const Folder folder;
  const std::string faults = folder / "faults.yaml";
  const std::string file = folder / "telemetry.jsonl";
  EXPECT_TRUE(write_file(faults, "faults: [{kind: node, nodes: [1], at: 5 ms}]\n"));
  for (const std::string network : {"ports", "flow"}) {
    EXPECT_EQ(
        orrery("simulate --model gpt2 --machine dgx-h100 --tp 2 --dp 8 --batch 16 --network " +
               network + " --faults " + faults + " --telemetry-out " + file)
            .status,
        2);
    const Outcome text = orrery("diagnose " + file);
    EXPECT_THAT(text.out, AllOf(HasSubstr("missing_rank: ranks 8, 10, 12, 14"),
                                HasSubstr("missing_rank: ranks 9, 11, 13, 15")));
    EXPECT_THAT(text.out, Not(HasSubstr("not diagnosable")));
  }
}

TEST(Diagnose, RefusesWhatItCannotUse) {
  EXPECT_THAT(orrery("diagnose").err, HasSubstr("which files?"));
  const Outcome wrong = orrery("diagnose nothing.jsonl --timeout soon --window 0");
  EXPECT_EQ(wrong.status, 2);
  EXPECT_THAT(wrong.err,
              AllOf(HasSubstr("--timeout: found 'soon'"), HasSubstr("--window: found '0'")));
}

}  // namespace
}  // namespace orrery::testing
