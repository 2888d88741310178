// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "command.h"

namespace orrery::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// Sets ORRERY_CONFIGS, or unsets it, as long as it lives.
class ConfigsFolder {
 public:
  explicit ConfigsFolder(const char* folder) {
    const char* before = std::getenv("ORRERY_CONFIGS");
    before_ = before == nullptr ? "" : before;
    folder == nullptr ? unsetenv("ORRERY_CONFIGS") : setenv("ORRERY_CONFIGS", folder, 1);
  }
  ~ConfigsFolder() { setenv("ORRERY_CONFIGS", before_.c_str(), 1); }
  ConfigsFolder(const ConfigsFolder&) = delete;
  ConfigsFolder& operator=(const ConfigsFolder&) = delete;

 private:
  std::string before_;
};

TEST(Configs, AreFoundFromTheFolderOfTheCommand) {
  const ConfigsFolder none(nullptr);
  const Outcome run = orrery("list machines");
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("dgx-h100"));
}

TEST(Configs, AFolderThatIsNotThereIsSaid) {
  const ConfigsFolder wrong("/nonexistent/configs");
  for (const char* command : {"list machines", "show machine dgx-h100", "list tables"}) {
    const Outcome run = orrery(command);
    EXPECT_EQ(run.status, 2) << command;
    EXPECT_THAT(run.err, HasSubstr("ORRERY_CONFIGS: found '/nonexistent/configs'")) << command;
  }
}

TEST(Orrery, VersionAndHelpSucceed) {
  const Outcome version = orrery("--version");
  EXPECT_EQ(version.status, 0);
  EXPECT_THAT(version.out, ::testing::MatchesRegex("orrery [0-9]+\\.[0-9]+\\.[0-9]+\n"));
  for (const char* command : {"", "simulate ", "list ", "show "}) {
    const Outcome help = orrery(std::string(command) + "--help");
    EXPECT_EQ(help.status, 0) << command;
    EXPECT_THAT(help.out, HasSubstr("Examples:\n  orrery ")) << command;
  }
}

TEST(Orrery, HelpOfSimulateNamesEveryPlanField) {
  const std::string help = orrery("simulate --help").out;
  for (const char* flag : {"--tp", "--stage-layers", "--global-batch", "--p2p-host-sync",
                           "--schedule {gpipe,1f1b,interleaved,"}) {
    EXPECT_THAT(help, HasSubstr(flag));
  }
}

TEST(Orrery, HelpOfACommandIsItsHelpText) {
  const Outcome help = orrery("help simulate");
  EXPECT_EQ(help.status, 0);
  EXPECT_EQ(help.out, orrery("simulate --help").out);
  EXPECT_EQ(orrery("help").out, orrery("--help").out);
  const Outcome unknown = orrery("help simulat");
  EXPECT_EQ(unknown.status, 2);
  EXPECT_THAT(unknown.err, HasSubstr("unknown command 'simulat' (did you mean 'simulate'?)"));
  EXPECT_THAT(orrery("hlep").err, HasSubstr("did you mean 'help'"));
}

TEST(Orrery, AMinusIsStandardInput) {
  const Folder folder;
  const std::string plan = folder.write("plan", "tp: 2\nglobal_batch: x\n");
  const std::string simulate = "simulate --model gpt2 --machine dgx-a100-80g --json --plan ";
  const Outcome wrong = orrery(simulate + "- <" + plan);
  EXPECT_THAT(wrong.err, HasSubstr("-:2: global_batch: found 'x'"));
  const std::string model = folder.write("model", orrery("show plan --tp 2 --global-batch 8").out);
  const auto run = nlohmann::json::parse(orrery(simulate + "- <" + model).out);
  EXPECT_EQ(run["plan"]["tp"], 2);
  EXPECT_EQ(run["plan"]["sequence_parallel"], true) << "what is left open stays so";
  const std::string configs = std::string(ORRERY_SOURCE_DIR) + "/configs/";
  EXPECT_EQ(orrery("show machine - <" + configs + "machines/dgx-h100.yaml").out,
            orrery("show machine dgx-h100").out);
  EXPECT_EQ(orrery("show machine - --json <" + configs + "machines/dgx-h100.yaml").out,
            orrery("show machine dgx-h100 --json").out);
  EXPECT_THAT(orrery("show model - <" + configs + "models/gpt3-175b.json").out,
              HasSubstr("12,288"));
  const Outcome table = orrery("plot lines - <" + folder.write("t", "x,y\n1,2\n2,3\n"));
  EXPECT_THAT(table.out, HasSubstr("<svg")) << table.err;
  const Outcome twice = orrery("simulate --model - --machine - <" + plan);
  EXPECT_EQ(twice.status, 2);
  EXPECT_THAT(twice.err, HasSubstr("-: standard input was read before; name it once"));
}

TEST(Orrery, UnknownCommandIsNamedWithAGuess) {
  const Outcome run = orrery("simulat --model gpt2");
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.out, IsEmpty());
  EXPECT_THAT(run.err, HasSubstr("unknown command 'simulat' (did you mean 'simulate'?)"));
  EXPECT_EQ(orrery("").status, 2);
  EXPECT_EQ(orrery("--nonsense").status, 2);
  EXPECT_EQ(orrery("''").status, 2);
}

TEST(List, EveryKindHasNamesWithDescriptions) {
  EXPECT_THAT(orrery("list machines").out, HasSubstr("dgx-a100-80g  "));
  EXPECT_THAT(orrery("list models").out, HasSubstr("174.6 billion parameters; 96 layers"));
  EXPECT_THAT(orrery("list plans").out, HasSubstr("gpt3-175b-1024"));
  EXPECT_THAT(orrery("list passes").out, HasSubstr("pipeline"));
  EXPECT_EQ(orrery("list tables").status, 0);
}

TEST(List, JsonIsOneObjectByKind) {
  for (const std::string kind : {"machines", "models", "plans", "passes", "tables", "quirks"}) {
    const Outcome run = orrery("list --json " + kind);
    ASSERT_EQ(run.status, 0) << run.err;
    EXPECT_TRUE(nlohmann::json::parse(run.out)[kind].is_array()) << kind;
  }
}

TEST(List, UnknownKindIsAMistakeWithAGuess) {
  const Outcome run = orrery("list machine");
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.err, AllOf(HasSubstr("found 'machine'"), HasSubstr("did you mean 'machines'")));
  EXPECT_EQ(orrery("list").status, 2);
}

TEST(Show, ModelSaysItsExactParameters) {
  const auto json = nlohmann::json::parse(orrery("show model gpt3-175b --json").out);
  // 96 x (12 H^2 + 13 H) + 2 H + V H + S H, H = 12288, V = 50257, S = 2048.
  const std::int64_t h = 12288;
  EXPECT_EQ(json["parameters"]["total"], 96 * (12 * h * h + 13 * h) + 2 * h + 50257 * h + 2048 * h);
  EXPECT_THAT(orrery("show model gpt3-175b").out, HasSubstr("96"));
}

TEST(Show, APlanWithoutANameIsEveryDefaultWithItsMeaning) {
  const Outcome run = orrery("show plan --zero 2");
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("\npp: 1 "));
  EXPECT_THAT(run.out, HasSubstr("# pipeline-parallel degree (stages)\n"));
  EXPECT_THAT(run.out, HasSubstr("\nzero: 2 ")) << "given, so not open";
  EXPECT_THAT(run.out, HasSubstr("\n# attention: left open: flash where the device computes in "
                                 "bf16; as_of before 2023: unfused\n"));
  EXPECT_THAT(run.out, HasSubstr("\n# dp: left open: devices / (tp x cp x pp), with --devices\n"));
}

TEST(Show, MachineAsYamlReadsBack) {
  const Folder folder;
  const Outcome first = orrery("show machine dgx-a100-80g --yaml");
  ASSERT_EQ(first.status, 0) << first.err;
  const std::string copy = folder.write("copy.yaml", first.out);
  EXPECT_EQ(orrery("show machine --yaml " + copy).out, first.out);
  EXPECT_THAT(orrery("show machine dgx-a100-80g").out, HasSubstr("2.039 TB/s"));
  EXPECT_TRUE(nlohmann::json::accept(orrery("show machine dgx-a100-80g --json").out));
}

TEST(Show, PlanIsMergedWithTheFlagsAndReadsBack) {
  const Folder folder;
  const Outcome first = orrery("show plan gpt3-175b-1024 --zero 1 --bucket 25MiB");
  ASSERT_EQ(first.status, 0) << first.err;
  EXPECT_THAT(first.out, HasSubstr("zero: 1"));
  const std::string copy = folder.write("plan.yaml", first.out);
  EXPECT_EQ(orrery("show plan " + copy).out, first.out);
  EXPECT_EQ(nlohmann::json::parse(orrery("show plan --json " + copy).out)["zero"], 1);
}

TEST(Show, MistakesNameWhatWouldBeRight) {
  EXPECT_THAT(orrery("show modle gpt2").err, HasSubstr("did you mean 'model'"));
  EXPECT_THAT(orrery("show model").err, HasSubstr("orrery list models"));
  const Outcome run = orrery("show machine dgx-a100-80");
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.err, HasSubstr("did you mean 'dgx-a100-80g'"));
}

}  // namespace
}  // namespace orrery::testing
