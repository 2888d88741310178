// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "command.h"

namespace orrery::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string on_eight(const std::string& arguments) {
  return "simulate --model gpt2 --machine dgx-a100-80g --tp 2 --pp 2 --dp 2 --global-batch 16 " +
         arguments;
}

TEST(OverlapTensor, SaysThatItsHardwareIsHypothetical) {
  const Outcome table = orrery(on_eight("--overlap-tensor tracked"));
  ASSERT_EQ(table.status, 0) << table.err;
  EXPECT_THAT(table.out,
              AllOf(HasSubstr("hypothetical hardware"), HasSubstr("states none (device.tracker)"),
                    HasSubstr("reads of the sums"), HasSubstr("fc2_gemm")));
  const Outcome run = orrery(on_eight("--overlap-tensor tracked --json"));
  ASSERT_EQ(run.status, 0) << run.err;
  const auto json = nlohmann::json::parse(run.out)["overlap_tensor"];
  // Two ranks: 3 reads of half the result become none, 4 writes become 2.
  EXPECT_EQ(json["fused_bytes"]["reduce_reads"], 0);
  EXPECT_EQ(json["unfused_bytes"]["writes"].get<double>(),
            2 * json["fused_bytes"]["writes"].get<double>());
  const Outcome split = orrery(on_eight("--overlap-tensor cu_split"));
  ASSERT_EQ(split.status, 0) << split.err;
  EXPECT_THAT(split.out, Not(HasSubstr("hypothetical")));
}

TEST(OverlapTensor, IsRefusedWhereNothingOverlaps) {
  const std::string one = " --model gpt2 --machine dgx-a100-80g --dp 2 --global-batch 16 ";
  for (const char* command : {"simulate", "estimate", "explain"}) {
    const Outcome run = orrery(command + one + "--overlap-tensor tracked");
    EXPECT_EQ(run.status, 2) << command;
    EXPECT_THAT(run.err, HasSubstr("none without tensor parallelism")) << command;
  }
  const Outcome unknown = orrery(on_eight("--overlap-tensor traced"));
  EXPECT_EQ(unknown.status, 2);
  EXPECT_THAT(unknown.err, HasSubstr("tracked"));
  const Outcome served =
      orrery("serve --model llama-3.1-8b --machine dgx-h100 --overlap-tensor tracked");
  EXPECT_EQ(served.status, 2);
  EXPECT_THAT(served.err, HasSubstr("none with tp 1"));
  const Outcome searched = orrery(
      "plan --model gpt2 --machine dgx-a100-80g --devices 4 --batch 16 --only "
      "overlap_tensor=none,tracked");
  EXPECT_EQ(searched.status, 2);
  EXPECT_THAT(searched.err, HasSubstr("states no tracker"));
}

TEST(OverlapTensor, IsChosenByThePlannerWhereTheMachineStatesATracker) {
  const std::string machine = std::string(ORRERY_SOURCE_DIR) + "/examples/t3/machine.yaml";
  const std::string search =
      "plan --model gpt2-medium --machine " + machine + " --devices 4 --batch 4 --tp 4 --json";
  const Outcome found = orrery(search);
  ASSERT_EQ(found.status, 0) << found.err;
  EXPECT_THAT(found.out, HasSubstr("\"overlap_tensor\": \"tracked_mca\""));
}

TEST(Tiles, EqualTheSumBitForBitAndNameWhatIsWrong) {
  const Outcome run =
      orrery("tiles --ranks 2 --rows 16 --columns 8 --inner 8 --tiles 2 --repeat 1 --json");
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(nlohmann::json::parse(run.out)["equal"], true);
  // 512 rows unless stated: of 3 ranks with 4 tiles each 516.
  const Outcome three = orrery("tiles --ranks 3 --columns 8 --inner 8 --repeat 1 --json");
  EXPECT_EQ(nlohmann::json::parse(three.out)["rows"], 516);
  const Outcome wrong = orrery("tiles --ranks 3 --rows 16");
  EXPECT_EQ(wrong.status, 2);
  EXPECT_THAT(wrong.err, AllOf(HasSubstr("--rows"), HasSubstr("a multiple of ranks x tiles")));
}

}  // namespace
}  // namespace orrery::testing
