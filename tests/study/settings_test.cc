// SPDX-License-Identifier: Apache-2.0
#include "study/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

namespace orrery::study {
namespace {

using ::testing::HasSubstr;

std::vector<Setting> shape() {
  return {{"layers", "2", "f:1"},
          {"hidden", "64", "f:1"},
          {"heads", "4", "f:1"},
          {"vocab", "512", "f:1"},
          {"sequence", "128", "f:1"}};
}

TEST(Settings, DescribeModelAndPlanAndTheLastOneWins) {
  std::vector<Setting> settings = shape();
  settings.push_back({"tp", "2", "f:2"});
  settings.push_back({"tp", "4", "--tp"});
  settings.push_back({"host_dispatch", "3 us", "f:2"});
  const auto run = make_case(settings);
  ASSERT_TRUE(run) << run.error().to_string();
  EXPECT_EQ(run->plan.tp, 4);
  EXPECT_EQ(run->plan.host_dispatch, 3_us);
  EXPECT_EQ(run->model()->layers, 2);
  EXPECT_EQ(run->model()->ffn, 4 * 64);
  EXPECT_EQ(run->model()->max_positions, 128);
}

TEST(Settings, ChunksDecideTheScheduleUnlessItIsSet) {
  std::vector<Setting> settings = shape();
  EXPECT_EQ(make_case(settings)->plan.schedule, plan::Schedule::one_f_one_b);
  settings.push_back({"chunks", "3", ""});
  EXPECT_EQ(make_case(settings)->plan.schedule, plan::Schedule::interleaved);
  settings.push_back({"schedule", "gpipe", ""});
  EXPECT_EQ(make_case(settings)->plan.schedule, plan::Schedule::gpipe);
}

TEST(Settings, EveryMistakeNamesItsPlace) {
  std::vector<Setting> settings = shape();
  settings.push_back({"heds", "4", "f:3"});
  settings.push_back({"recompute", "ful", "f:4"});
  settings.push_back({"tp", "1.5", "--tp"});
  const auto run = make_case(settings);
  ASSERT_FALSE(run);
  const std::string text = run.error().to_string();
  EXPECT_EQ(run.error().mistakes.size(), 3U);
  EXPECT_THAT(text, HasSubstr("did you mean 'heads'?"));
  EXPECT_THAT(text, HasSubstr("f:4"));
  EXPECT_THAT(text, HasSubstr("--tp"));
}

struct Spelled {
  const char* name;
  const char* shipped;
};

TEST(Settings, NamesOfPublishedTablesAreShippedModels) {
  // Every model name of docs/performance-summary.md and its archive (NVIDIA-NeMo/Megatron-Bridge,
  // releases 25.09 to 26.08) and of the performance summaries of NeMo (NVIDIA/NeMo
  // docs/source/performance/performance_summary.md, user guide 24.07 to 25.07), without remarks
  // such as "(w/o MTP)", which change the run.
  constexpr auto kNames = std::to_array<Spelled>({
      // Megatron-Bridge
      {"LLAMA3_8B", "llama-3-8b"},
      {"LLAMA3_70B", "llama-3-70b"},
      {"LLAMA3.1_405B", "llama-3.1-405b"},
      {"DeepSeekV3", "deepseek-v3"},
      {"DeepSeekV4 Flash", "deepseek-v4-flash"},
      {"GPT OSS 120B", "gpt-oss-120b"},
      {"Qwen3_30B_a3B", "qwen3-30b-a3b"},
      {"Qwen3_235B_a22B", "qwen3-235b-a22b"},
      {"Nemotron_3_Nano", "nemotron-3-nano"},
      {"Nemotron_3_Super", "nemotron-3-super"},
      {"Nemotron_3_Ultra", "nemotron-3-ultra"},
      {"Nemotron_3_5_Lightning", "nemotron-3.5-lightning"},
      {"Kimi_K2", "kimi-k2"},
      // its recipes
      {"DeepSeekV4 Pro", "deepseek-v4-pro"},
      {"NemotronH 56B", "nemotron-h-56b"},
      // NeMo
      {"GPT3-5B", "gpt3-5b"},
      {"GPT3-20B", "gpt3-20b"},
      {"GPT3-175B", "gpt3-175b"},
      {"LLAMA2-7B", "llama-2-7b"},
      {"LLAMA2-13B", "llama-2-13b"},
      {"LLAMA2-70B", "llama-2-70b"},
      {"LLAMA3-8B", "llama-3-8b"},
      {"LLAMA3-70B", "llama-3-70b"},
      {"LLAMA3-405B", "llama-3.1-405b"},
      {"LLAMA3.1-405B", "llama-3.1-405b"},
      {"LLAMA4-Scout-LLM", "llama-4-scout"},
      {"LLAMA4-Maverick-LLM", "llama-4-maverick"},
      {"Nemotron-8B", "nemotron-8b"},
      {"Nemotron-15B", "nemotron-4-15b"},
      {"Nemotron-22B", "nemotron-22b"},
      {"Nemotron-340B", "nemotron-4-340b"},
      {"Nemotron5-H-56B", "nemotron-h-56b"},
      {"Mixtral-8x7B", "mixtral-8x7b"},
      {"Mixtral-8x22B", "mixtral-8x22b"},
      // its recipes
      {"nemotron3_8b", "nemotron-8b"},
      {"nemotron3_22b", "nemotron-22b"},
      {"nemotron4_15b", "nemotron-4-15b"},
      {"nemotron4_340b", "nemotron-4-340b"},
  });
  for (const Spelled& row : kNames) {
    TableCase run;
    run.names.model = row.name;
    const auto model = run.model();
    ASSERT_TRUE(model) << row.name << ": " << model.error().to_string();
    EXPECT_EQ(model->name, row.shipped) << row.name;
  }
  TableCase run;
  run.names.model = "Nemotron-9B";
  EXPECT_FALSE(run.model()) << "nothing that only looks alike";
}

TEST(Settings, ShapesThatAreNoModelAreRefused) {
  for (const Setting& bad :
       {Setting{"heads", "5", ""}, Setting{"hidden", "0", ""}, Setting{"layers", "-1", ""},
        Setting{"vocab", "99999999999", ""}, Setting{"hidden", "16777216", ""}}) {
    std::vector<Setting> settings = shape();
    if (bad.value == "16777216") {
      settings.push_back({"layers", "65536", ""});  // 12 L H^2 = 2 x 10^20 parameters
    }
    settings.push_back(bad);
    EXPECT_FALSE(make_case(settings)) << bad.field << " " << bad.value;
  }
}

}  // namespace
}  // namespace orrery::study
