// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "command.h"

namespace orrery::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr const char* kHeader =
    "params_b,heads,hidden,layers,tp,pp,dp,interleave,n_gpus,global_batch,micro_batch,seq,vocab,"
    "tflops_per_gpu,origin\n";

TEST(ValidateCommand, ScoresRowsOfTheUsersOwn) {
  const Folder folder;
  const std::string file = folder.write(
      "mine.csv", std::string(kHeader) + "1.7,24,2304,24,1,1,8,1,8,128,16,2048,51200,140,mine\n");
  const Outcome run = orrery("validate --table megatron_sc21_table1 " + file + " --json");
  ASSERT_EQ(run.status, 0) << run.err;
  const auto json = nlohmann::json::parse(run.out);
  ASSERT_EQ(json.at("predictions").size(), 1U);
  const auto& row = json["predictions"][0];
  EXPECT_EQ(row.at("key"), "params_b=1.7 tp=1 pp=1 dp=8");
  EXPECT_EQ(row.at("published"), 140);
  EXPECT_EQ(row.at("oom"), false);
  EXPECT_EQ(row.at("origin"), "mine");
  const double error = row.at("predicted").get<double>() / 140 - 1;
  EXPECT_DOUBLE_EQ(row.at("error").get<double>(), error);
  for (const char* key : {"mape", "median", "worst"}) {
    EXPECT_DOUBLE_EQ(json.at(key).get<double>(), std::abs(error)) << key;
  }
  EXPECT_EQ(json.at("tables").size(), 1U);
}

TEST(ValidateCommand, FlagsOverrideTheProfile) {
  const Folder folder;
  const std::string file = folder.write(
      "mine.csv", std::string(kHeader) + "1.7,24,2304,24,1,1,8,1,8,128,16,2048,51200,140,mine\n");
  const std::string command = "validate --json --table megatron_sc21_table1 " + file;
  const auto predicted = [](const Outcome& run) {
    return nlohmann::json::parse(run.out).at("predictions")[0].at("predicted").get<double>();
  };
  EXPECT_GT(predicted(orrery(command)), predicted(orrery(command + " --host-dispatch '2 ms'")));
}

TEST(ValidateCommand, WritesThePageWhereItIsToldTo) {
  const Folder folder;
  const Outcome run =
      orrery("validate --table korthikanti2022_memory --output " + (folder / "page.md"));
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("korthikanti2022_memory"));
  const std::string page = content(folder / "page.md");
  EXPECT_THAT(page, HasSubstr("## korthikanti2022_memory"));
  EXPECT_THAT(page, HasSubstr("| vocab | 51200 | section 4 of the paper |"));
  EXPECT_THAT(page, HasSubstr("| model=22B mode=none activations |"));
}

TEST(ValidateCommand, RowsOfWhichNoneRunsExitWithOneAndTellAllOfTheirMistakes) {
  const Folder folder;
  const std::string bad = "1.7,24,2304,24,one,two,8,1,8,128,16,2048,51200,fast,mine\n";
  const std::string good = "1.7,24,2304,24,1,1,8,1,8,128,16,2048,51200,140,mine\n";
  const std::string table = "validate --table megatron_sc21_table1 ";
  const Outcome none = orrery(table + folder.write("none.csv", kHeader + bad));
  EXPECT_EQ(none.status, 1);
  EXPECT_THAT(none.out, ::testing::AllOf(HasSubstr("found 'fast'"), HasSubstr("found 'one'"),
                                         HasSubstr("found 'two'")));
  EXPECT_EQ(orrery(table + folder.write("some.csv", kHeader + bad + good)).status, 0);
}

TEST(ValidateCommand, BadInputIsNamedAndNothingIsPrinted) {
  const Folder folder;
  const std::string rows = folder.write("rows.csv", "layers,hiden\n1,2\n");
  const std::string binary = folder.write("binary.csv", std::string("a\0b", 3));
  for (const std::string& arguments :
       {std::string("--table megatron_sc21_table"), "--table megatron_sc21_table1 " + rows, rows,
        "--table megatron_sc21_table1 " + binary,
        std::string("--table megatron_sc21_table1 --tp two"),
        std::string("--table megatron_sc21_table1 missing.csv"), std::string("--threads 0")}) {
    const Outcome run = orrery("validate " + arguments);
    EXPECT_EQ(run.status, 2) << arguments;
    EXPECT_THAT(run.out, IsEmpty()) << arguments;
    EXPECT_THAT(run.err, Not(IsEmpty())) << arguments;
  }
  EXPECT_THAT(orrery("validate --table megatron_sc21_table").err, HasSubstr("did you mean"));
  EXPECT_THAT(orrery("validate training_tpu").err,
              HasSubstr("FILE: found 'training_tpu', expected rows of your own; --table names"));
  EXPECT_THAT(orrery("validate --table megatron_sc21_table1 " + rows).err,
              HasSubstr("rows.csv:1: header: column 'hidden' is missing (did you mean 'hiden'?)"));
}

}  // namespace
}  // namespace orrery::testing
