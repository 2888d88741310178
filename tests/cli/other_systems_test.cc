// SPDX-License-Identifier: Apache-2.0
/// orrery calculon, compose, home, patches, and gemm on DRAM that multiplies.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "command.h"

namespace orrery::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

nlohmann::json json_of(const std::string& words) {
  return nlohmann::json::parse(orrery(words + " --json").out);
}

TEST(OtherSystems, GemmOnBanksSaysRowsAndEnergy) {
  // 768 x 3,072 weights over 128 banks: 18,432 elements, 1,152 columns, 18 rows of 64.
  const auto json = json_of("gemm --machine pim-gpt --m 1 --n 3072 --k 768");
  EXPECT_EQ(json["columns"], 1152);
  EXPECT_EQ(json["activates"], 18);
  EXPECT_GT(json["energy_j"], 0);
  EXPECT_THAT(orrery("gemm --machine pim-gpt --m 1 --n 3072 --k 768").out, HasSubstr("1152"));
  EXPECT_THAT(orrery("gemm --machine pim-gpt --m 1 --n 8 --k 8 --sparsity 2:4").err,
              HasSubstr("a device of model systolic"));
}

TEST(OtherSystems, CalculonsOptimumSimulates) {
  const Folder folder;
  const std::string out = folder / "out";
  const std::string examples = std::string(ORRERY_SOURCE_DIR) + "/examples/calculon/";
  const std::string command =
      "ORRERY=" + std::string(ORRERY_BINARY) + " " + examples + "run.sh >" + out;
  ASSERT_EQ(std::system(command.c_str()), 0);
  EXPECT_THAT(content(out), AllOf(HasSubstr("193496 executions"), HasSubstr("Step time")));
  const Outcome wrong =
      orrery("calculon --application " + examples + "megatron-22B.json --system " + examples +
             "a100_80g.json --devices 0 --datatype float32");
  EXPECT_EQ(wrong.status, 2);
  EXPECT_THAT(wrong.err, AllOf(HasSubstr("--devices"), HasSubstr("--batch: missing"),
                               HasSubstr("no rates of float32")));
}

TEST(OtherSystems, ComposeSwitchesExperts) {
  const std::string words = "compose --model llama-2-7b --machine sn40l --devices 8 --batches 50";
  const auto json = json_of(words);
  EXPECT_EQ(json["switch_bandwidth_bytes_per_s"], 1e12);
  EXPECT_EQ(json["used"], 50);
  EXPECT_THAT(orrery(words).out, HasSubstr("switching"));
  EXPECT_THAT(orrery("compose --model llama-2-7b --experts 0 --batch x").err,
              AllOf(HasSubstr("--machine: missing"), HasSubstr("--batch")));
}

TEST(OtherSystems, HomeStreamsWeights) {
  const auto json = json_of("home --model llama-2-7b --window 2");
  EXPECT_EQ(json["message_bytes"], 16384);
  EXPECT_EQ(json["token_all_reduce"], "star");
  EXPECT_THAT(orrery("home --model mixtral-8x7b --powers 1,2").err,
              AllOf(HasSubstr("one MLP a layer"), HasSubstr("8 numbers")));
}

TEST(OtherSystems, PatchesListSchemes) {
  const auto json = json_of("patches --resolution 1024 --devices 2 --split-guidance false");
  EXPECT_EQ(json["patches"], 2);
  EXPECT_EQ(json["rows"].size(), 4U);
  EXPECT_EQ(json["rows"][1]["saved"], 0);
  EXPECT_THAT(orrery("patches --devices 3").err, HasSubstr("an even number"));
}

}  // namespace
}  // namespace orrery::testing
