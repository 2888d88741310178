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
  const std::string files = "calculon --application " + examples + "megatron-22B.json --system " +
                            examples + "a100_80g.json --batch 4 ";
  EXPECT_THAT(orrery(files + "--devices 7").err, HasSubstr("no split of the devices"));
  EXPECT_THAT(orrery(files + "--devices 8 --top 1000000").err,  // each is kept in order
              HasSubstr("--top: found '1000000', expected 1 to 1000"));
  const Outcome twice = orrery("calculon --application " + examples + "megatron-1T.json --system " +
                               examples + "a100_80g.json --execution " + examples +
                               "megatron-1T_3072.json --top 3 --datatype float16");
  EXPECT_EQ(twice.status, 2);
  EXPECT_THAT(twice.err, AllOf(HasSubstr("--top: contradicts --execution"),
                               HasSubstr("--datatype: contradicts --execution")));
}

TEST(OtherSystems, ComposeSwitchesExperts) {
  const std::string words = "compose --model llama-2-7b --machine sn40l --devices 8 --batches 50";
  const auto json = json_of(words);
  EXPECT_EQ(json["switch_bandwidth_bytes_per_s"], 1e12);
  EXPECT_EQ(json["used"], 50);
  EXPECT_THAT(orrery(words).out, HasSubstr("switching"));
  EXPECT_THAT(orrery("compose --model llama-2-7b --experts 0 --batch x").err,
              AllOf(HasSubstr("--machine: missing"), HasSubstr("--batch")));
  const Outcome zero = orrery(words + " --switch-bandwidth '0 B/s'");
  EXPECT_EQ(zero.status, 2);
  EXPECT_THAT(zero.err, HasSubstr("--switch-bandwidth: found '0 B/s', expected a rate above 0"));
  EXPECT_THAT(orrery(words + " --experts 0 --reserved 2").err,
              AllOf(HasSubstr("--experts: found '0'"), HasSubstr("--reserved: found '2'")));
}

TEST(OtherSystems, HomeStreamsWeights) {
  const auto json = json_of("home --model llama-2-7b --window 2");
  EXPECT_EQ(json["message_bytes"], 16384);
  EXPECT_EQ(json["token_all_reduce"], "star");
  EXPECT_THAT(
      orrery("home --model mixtral-8x7b --powers 1,2").err,
      AllOf(HasSubstr("one MLP a layer"), HasSubstr("--powers: found '1,2', expected 8 numbers")));
  EXPECT_THAT(orrery("home --model llama-2-7b --devices 0").err, HasSubstr("--devices: found '0'"));
}

TEST(OtherSystems, HomeTakesADevicePerMachine) {
  const std::string folder = std::string(ORRERY_SOURCE_DIR) + "/examples/home/";
  const std::string three = folder + "m1.yaml," + folder + "i5.yaml," + folder + "i7.yaml";
  const auto json = json_of("home --model llama-2-7b --window 4 --machine " + three);
  EXPECT_EQ(json["machine"], "m1, i5, i7");
  EXPECT_EQ(json["devices"], 3);
  // 410 of 909 GFLOP/s are the master's: its blocks are loaded at 3.3 GB/s.
  EXPECT_NEAR(json["load_mlp_s"], 4 * (3 * 4096 * 11008.0 * 410 / 909 + 4096) / 3.3e9, 1e-6);
  EXPECT_THAT(orrery("home --model llama-2-7b --devices 4 --machine " + three).err,
              HasSubstr("--devices: found '4', expected 3, one a machine"));
}

TEST(OtherSystems, PatchesListSchemes) {
  const auto json = json_of("patches --resolution 1024 --devices 2 --split-guidance false");
  EXPECT_EQ(json["patches"], 2);
  EXPECT_EQ(json["rows"].size(), 4U);
  EXPECT_EQ(json["rows"][1]["saved"], 0);
  EXPECT_THAT(orrery("patches --devices 3").err, HasSubstr("an even number"));
}

TEST(OtherSystems, TimesBeyond106DaysAreNoFigures) {
  // An A100 whose peaks are 1 FLOP/s: every kernel of a model saturates Time.
  const Folder folder;
  std::string text =
      content(std::string(ORRERY_SOURCE_DIR) + "/configs/machines/dgx-a100-80g.yaml");
  const std::size_t peak = text.find("  peak: {");
  text.replace(peak, text.find('\n', peak) - peak,
               "  peak: {fp32: 1 FLOP/s, tf32: 1 FLOP/s, bf16: 1 FLOP/s, fp16: 1 FLOP/s}");
  const std::string slow = " --machine " + folder.write("slow.yaml", text);
  const auto expect_refused = [&](const char* words, const char* why) {
    const Outcome run = orrery(words + slow);
    EXPECT_EQ(run.status, 2) << words;
    EXPECT_EQ(run.out, "") << words;
    EXPECT_THAT(run.err, HasSubstr(why)) << words;
  };
  for (const char* words :
       {"gemm --m 4096 --n 4096 --k 4096", "serve --model gpt2 --requests 1 --input 100 --output 5",
        "compose --model gpt2", "patches", "home --model gpt2 --devices 4"}) {
    expect_refused(words, "takes longer than 106 days");
  }
  expect_refused("estimate --model gpt2", "takes longer than 53 days");  // sums of two are times
  EXPECT_THAT(orrery("flow --topology mesh:2x1,bandwidth=1e-300GB/s --traffic shift").err,
              HasSubstr("a flow takes longer than 106 days"));
}

}  // namespace
}  // namespace orrery::testing
