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
using ::testing::Not;
using ::testing::StartsWith;

/// A run of milliseconds on eight devices, with more arguments.
std::string small(const std::string& arguments = {}) {
  return "simulate --model gpt2 --machine dgx-a100-80g --tp 2 --pp 2 --dp 2 --global-batch 16 " +
         arguments;
}

TEST(Simulate, PrintsATable) {
  const Outcome run = orrery(small());
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.err, IsEmpty());
  EXPECT_THAT(run.out, AllOf(HasSubstr("Step time"), HasSubstr("MFU"), HasSubstr("bubble"),
                             HasSubstr("Memory per device"), HasSubstr("events/s")));
}

TEST(Simulate, JsonIsOneObjectWithTheFiguresOfTheManual) {
  const Outcome run = orrery(small("--json"));
  ASSERT_EQ(run.status, 0) << run.err;
  const auto json = nlohmann::json::parse(run.out);
  for (const char* key : {"model", "machine", "devices", "plan", "step_time_s", "tokens_per_s",
                          "model_flops_per_device", "hardware_flops_per_device", "mfu", "hfu",
                          "breakdown_s", "hidden_s", "memory_bytes", "events", "timing", "fold"}) {
    EXPECT_TRUE(json.contains(key)) << key;
  }
  EXPECT_EQ(json["plan"]["tp"], 2);
  EXPECT_EQ(json["devices"], 8);
  EXPECT_EQ(json["memory_bytes"].size(), 2U);
}

TEST(Simulate, AFrameworkFillsWhatIsNotGiven) {
  const Outcome run = orrery(
      "simulate --model gpt2 --machine dgx-a100-80g --tp 2 --dp 4 --global-batch 16 --json "
      "--framework torchtitan --overlap-param-gather false");
  ASSERT_EQ(run.status, 0) << run.err;
  const auto json = nlohmann::json::parse(run.out);
  EXPECT_EQ(json["plan"]["zero"], 3);
  EXPECT_EQ(json["plan"]["attention"], "flash2");
  EXPECT_EQ(json["plan"]["overlap_param_gather"], false);  // given
  EXPECT_LT(json["memory_bytes"][0]["allocated"], json["memory_bytes"][0]["total"]);
  EXPECT_EQ(json["memory_bytes"][0]["close_call"], false);
  const Outcome unknown = orrery(small("--framework torchtitam"));
  EXPECT_EQ(unknown.status, 2);
  EXPECT_THAT(unknown.err, HasSubstr("did you mean 'torchtitan'"));
}

TEST(Simulate, ASliceIsNamedAndCounted) {
  const std::string tpu = "simulate --model gpt2 --machine tpu-v5p --global-batch 256 ";
  const Outcome run = orrery(tpu + "--slice v5p-512 --json");
  ASSERT_EQ(run.status, 0) << run.err;
  const auto json = nlohmann::json::parse(run.out);
  EXPECT_EQ(json["devices"], 256);
  EXPECT_EQ(json["machine"], "tpu-v5p (4x8x8, 256 chips, v5p-512)");
  EXPECT_EQ(orrery(tpu + "--slice 5x5x5x5").status, 2);
  EXPECT_EQ(orrery(tpu + "--slice 4x4x4 --devices 32").status, 2);
}

TEST(Simulate, CsvIsAHeaderAndALine) {
  const Outcome run = orrery(small("--csv"));
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, StartsWith("model,machine,devices,network,plan.tp,"));
  EXPECT_EQ(std::count(run.out.begin(), run.out.end(), '\n'), 2);
}

TEST(Simulate, FlagsWinOverThePlanFile) {
  const Folder folder;
  const std::string plan = folder.write("plan.yaml", "tp: 2\npp: 2\ndp: 2\nglobal_batch: 16\n");
  const Outcome run = orrery("simulate --model gpt2 --machine dgx-a100-80g --json --plan " + plan +
                             " --pp 1 --dp=4 --recompute full");
  ASSERT_EQ(run.status, 0) << run.err;
  const auto json = nlohmann::json::parse(run.out);
  EXPECT_EQ(json["plan"]["tp"], 2);
  EXPECT_EQ(json["plan"]["pp"], 1);
  EXPECT_EQ(json["plan"]["dp"], 4);
  EXPECT_EQ(json["plan"]["recompute"], "full");
}

TEST(Simulate, UnderscoresAndBooleansWithoutValueAreUnderstood) {
  const Outcome run =
      orrery(small("--sequence_parallel --overlap-p2p false --host_dispatch=5us --json"));
  ASSERT_EQ(run.status, 0) << run.err;
  const auto json = nlohmann::json::parse(run.out);
  EXPECT_EQ(json["plan"]["sequence_parallel"], true);
  EXPECT_EQ(json["plan"]["overlap_p2p"], false);
}

TEST(Simulate, NoFoldSimulatesEveryRankWithTheSameResult) {
  const auto folded = nlohmann::json::parse(orrery(small("--json")).out);
  const auto unfolded = nlohmann::json::parse(orrery(small("--json --no-fold")).out);
  EXPECT_EQ(unfolded["fold"]["simulated"], 8);
  EXPECT_LT(folded["fold"]["simulated"], 8);
  EXPECT_EQ(folded["step_time_s"], unfolded["step_time_s"]);
}

TEST(Simulate, SeveralStepsHaveTheirEndsAndAMean) {
  const auto one = nlohmann::json::parse(orrery(small("--json")).out);
  EXPECT_FALSE(one.contains("steps"));
  const auto four = nlohmann::json::parse(orrery(small("--steps 4 --warm 1 --json")).out);
  EXPECT_EQ(four["steps"]["count"], 4);
  EXPECT_EQ(four["steps"]["warm"], 1);
  const auto ends = four["steps"]["ends_s"].get<std::vector<double>>();
  ASSERT_EQ(ends.size(), 4U);
  EXPECT_NEAR(four["step_time_s"].get<double>(), (ends[3] - ends[0]) / 3, 1e-11);
  EXPECT_LE(four["steps"]["run_time_s"], 4 * one["step_time_s"].get<double>());
  const Outcome table = orrery(small("--steps 40 --warm 1"));
  EXPECT_THAT(table.out,
              AllOf(HasSubstr("Steps (39 of 40 measured"), HasSubstr("warm-up"), HasSubstr("...")));
}

TEST(Simulate, StepsThatCannotBeAreMistakes) {
  for (const auto& [arguments, what] :
       {std::pair("--steps 0", "--steps"), std::pair("--steps 3 --warm 3", "less than --steps"),
        std::pair("--warm 1", "less than --steps"), std::pair("--steps many", "--steps")}) {
    const Outcome run = orrery(small(arguments));
    EXPECT_NE(run.status, 0) << arguments;
    EXPECT_THAT(run.err, HasSubstr(what));
  }
}

TEST(Simulate, EveryMistakeOfTheCommandLineAtOnce) {
  const Outcome run = orrery(
      "simulate --model gpt5-175b --tp two --recompute ful --devices 0 --skip fuze --json --csv");
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.out, IsEmpty());
  EXPECT_THAT(run.err, HasSubstr("did you mean 'gpt3-175b'"));
  EXPECT_THAT(run.err, HasSubstr("--machine: missing"));
  EXPECT_THAT(run.err, HasSubstr("--tp: found 'two'"));
  EXPECT_THAT(run.err, AllOf(HasSubstr("--recompute: found 'ful', expected one of"),
                             HasSubstr("did you mean 'full'")));
  EXPECT_THAT(run.err, HasSubstr("--devices: found '0', expected at least 1"));
  EXPECT_THAT(run.err, AllOf(HasSubstr("--skip: found 'fuze'"), HasSubstr("did you mean 'fuse'")));
  EXPECT_THAT(run.err, HasSubstr("--csv: contradicts --json"));
}

TEST(Simulate, UnknownOptionsAreNamedWithAGuess) {
  const Outcome run = orrery(small("--mircobatch 2 --zero_phase 1 stray"));
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.out, IsEmpty());
  EXPECT_THAT(run.err, HasSubstr("unknown option --mircobatch (did you mean '--microbatch'?)"));
  EXPECT_THAT(run.err, HasSubstr("unknown option --zero-phase"));
  EXPECT_THAT(run.err, HasSubstr("unexpected argument 'stray'"));
}

TEST(Simulate, FlagsOfOtherToolsSayWhatStandsForThem) {
  const Outcome run = orrery(small("--gpus 8 --fsdp full --bf16 --gradient_checkpointing"));
  EXPECT_EQ(run.status, 2);
  EXPECT_EQ(run.err,
            "unknown option --gpus: here --devices is the number of all accelerators together; "
            "see orrery simulate --help\n"
            "unknown option --fsdp: here --zero 3 shards parameters too (FULL_SHARD), --zero 2 is "
            "SHARD_GRAD_OP; see orrery simulate --help\n"
            "unknown option --bf16: here --compute-type bf16 (the default), fp16, tf32 or fp32; "
            "see orrery simulate --help\n"
            "unknown option --gradient-checkpointing: here --recompute full, or selective for the "
            "attention cores alone; see orrery simulate --help\n");
  const auto said = [](const std::string& arguments) { return orrery(arguments).err; };
  EXPECT_THAT(said("compare --tp 2"), HasSubstr("--tp: here every RUN is a plan's file"));
  EXPECT_THAT(said("collective --bytes 1MiB"), HasSubstr("--bytes: here --min is the first size"));
  EXPECT_THAT(said(small("--json step.json")),
              HasSubstr("unexpected argument 'step.json'; --json prints to standard output: "
                        "--json > step.json"));
  EXPECT_THAT(said("version"), HasSubstr("did you mean '--version'"));
  // What a command does not have it does not name.
  EXPECT_THAT(orrery("list models --gpus 8").err, Not(HasSubstr("--devices")));
}

TEST(Simulate, ASequenceFarAboveCommonUseIsSaid) {
  EXPECT_THAT(orrery("estimate --model gpt2 --machine dgx-h100 --devices 8").err, IsEmpty());
  const Outcome longest =
      orrery("estimate --model qwen2.5-7b --machine dgx-h100 --devices 8 --tp 4");
  EXPECT_THAT(longest.err, HasSubstr("note: --sequence: 131072 tokens, the longest that"));
}

TEST(Simulate, AnUnknownOptionHidesNoOtherMistake) {
  const Outcome run = orrery(
      "simulate --model gpt2 --machine dgx-a100-80g --devices 8 --tp 5 --gloabl-batch 16 --dp 3 "
      "--schedule interleaved --pp 0 --json --csv");
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.err, HasSubstr("unknown option --gloabl-batch (did you mean '--global-batch'?)"));
  EXPECT_THAT(run.err, HasSubstr("--pp: found '0', expected a number from 1"));
  EXPECT_THAT(run.err, HasSubstr("--csv: contradicts --json"));
  // Read as what it may mean: 16 sequences do not divide by dp 3, where the default 1 would not
  // divide by 2 either.
  const Outcome batch =
      orrery("simulate --model gpt2 --machine dgx-a100-80g --tp 5 --dp 3 --gloabl-batch 16");
  EXPECT_THAT(batch.err, HasSubstr("--tp: found '5', expected a divisor of 12 attention heads"));
  EXPECT_THAT(batch.err, HasSubstr("--global-batch: found '16'"));
  const Outcome right =
      orrery("simulate --model gpt2 --machine dgx-a100-80g --dp 2 --gloabl-batch 16");
  EXPECT_EQ(right.status, 2);
  EXPECT_EQ(std::count(right.err.begin(), right.err.end(), '\n'), 1) << right.err;
}

TEST(Simulate, AMisspeltOptionDoesNotReplaceOneThatIsGiven) {
  const Outcome run = orrery(small("--global-bach 7"));
  EXPECT_EQ(run.err,
            "unknown option --global-bach (did you mean '--global-batch'?); see orrery simulate "
            "--help\n");
}

TEST(Simulate, NamesOfFrameworksAreUnderstood) {
  const Folder folder;
  const std::string ours =
      "simulate --csv --model gpt2 --machine dgx-a100-80g --tp 2 --pp 2 --dp 2 --microbatch 2 "
      "--global-batch 16 --sequence 512";
  const std::string base = "simulate --csv --model gpt2 --machine dgx-a100-80g --dp 2 ";
  const std::string megatron = folder.write("megatron.yaml",
                                            "tensor_model_parallel_size: 2\n"
                                            "pipeline_model_parallel_size: 2\n"
                                            "micro_batch_size: 2\nglobal_batch_size: 16\n"
                                            "seq_length: 512\n");
  // All but the two last values, which are the host's own time.
  const auto figures = [](const Outcome& run) {
    EXPECT_EQ(run.status, 0) << run.err;
    return run.out.substr(run.out.find('\n') + 1, 300);
  };
  const std::string expected = figures(orrery(ours));
  for (const std::string& flags :
       {std::string("--tensor-model-parallel-size 2 --pipeline-model-parallel-size=2 "
                    "--micro-batch-size 2 --global-batch-size 16 --seq-length 512"),
        std::string("--tensor_parallel_degree 2 --pipeline_parallel_degree 2 --seq_len 512 "
                    "--per_device_train_batch_size 2 --train_batch_size 16"),
        "--plan " + megatron}) {
    EXPECT_EQ(figures(orrery(base + flags)), expected) << flags;
  }
}

TEST(Simulate, AnAliasBesideItsOwnNameIsAMistake) {
  const Folder folder;
  const Outcome flags =
      orrery(small("--tensor-model-parallel-size 2 --seq-length 64 --seq-len 64"));
  EXPECT_EQ(flags.status, 2);
  EXPECT_THAT(flags.err, HasSubstr("--tensor-model-parallel-size: the same option as --tp"));
  EXPECT_THAT(flags.err, HasSubstr("--seq-len: the same option as --seq-length"));
  EXPECT_THAT(orrery(small("--tp 2")).err, HasSubstr("--tp: given twice"));
  const std::string plan = folder.write("p.yaml", "tp: 2\nmicrobatch: 1\nmicro_batch_size: 1\n");
  const Outcome file = orrery("simulate --model gpt2 --machine dgx-a100-80g --plan " + plan);
  EXPECT_EQ(file.status, 2);
  EXPECT_THAT(file.err, HasSubstr(plan + ":3: micro_batch_size: the same field as " + plan + ":2"));
}

TEST(Simulate, HelpNamesTheAliases) {
  const Outcome run = orrery("simulate --help");
  EXPECT_THAT(run.out, AllOf(HasSubstr("--tensor-model-parallel-size"),
                             HasSubstr("--per-device-train-batch-size"),
                             HasSubstr("--tensor-parallel-degree")));
}

TEST(Simulate, RangesOfAPlanFileNameFileAndLine) {
  const Folder folder;
  const std::string plan = folder.write("p.yaml", "tp: 5\npp: 2\nmicro_batch_size: 3\n");
  const std::string step = "simulate --model gpt2 --machine dgx-a100-80g --plan " + plan;
  const Outcome run = orrery(step + " --zero 7");
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.err, HasSubstr("--zero: found '7', expected a number from 0 to 3"));
  const Outcome layout = orrery(step + " --global-batch 4");
  EXPECT_THAT(layout.err, HasSubstr(plan + ":1: tp: found '5', expected a divisor"));
  EXPECT_THAT(layout.err, HasSubstr("--global-batch: found '4', expected a multiple"));
  EXPECT_THAT(orrery("explain --model gpt2 --machine dgx-a100-80g --plan " + plan).err,
              HasSubstr(plan + ":1: tp: found '5'"));
  EXPECT_THAT(orrery("compare " + plan + " " + plan + " --model gpt2 --machine dgx-a100-80g").err,
              HasSubstr(plan + ":1: tp: found '5'"));
}

TEST(Simulate, AnEmptyFieldAndALeadingZeroAreMistakes) {
  const Folder folder;
  const std::string plan = folder.write("p.yaml", "dp:\ntp: 08\n");
  const Outcome run = orrery("simulate --model gpt2 --machine dgx-a100-80g --plan " + plan);
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.err, HasSubstr(plan + ":1: dp: found 'nothing'"));
  EXPECT_THAT(run.err, HasSubstr(plan + ":2: tp: found '08', expected a whole number without"));
}

TEST(Simulate, ControlSequencesOfAFileDoNotReachTheTerminal) {
  const Folder folder;
  const std::string config = content(std::string(ORRERY_SOURCE_DIR) + "/configs/models/gpt2.json");
  const std::string model = folder.write("esc\x1b[31m\x9b.json", config);
  const Outcome run = orrery("simulate --model '" + model + "' --machine dgx-a100-80g");
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, Not(HasSubstr("\x1b")));
  EXPECT_THAT(run.out, Not(HasSubstr("\x9b")));
}

TEST(Simulate, AHugeBatchIsNotSimulatedMicrobatchByMicrobatch) {
  // 10^8 microbatches of a pipeline: their steady part is one period, whatever its length.
  const Outcome run =
      orrery("simulate --model gpt2 --machine dgx-a100-80g --pp 4 --global-batch 100000000 --json");
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_LT(nlohmann::json::parse(run.out).at("timing").at("wall_s"), 10);
}

TEST(Simulate, AFloodOfMistakesIsCut) {
  const Folder folder;
  std::string lines;
  for (int i = 0; i < 100'000; ++i) {
    lines += "same: 1\n";
  }
  const std::string plan =
      folder.write("p.yaml", lines + "tp: " + std::string(200'000, 'x') + "\n");
  const Outcome run = orrery("simulate --model gpt2 --machine dgx-a100-80g --plan " + plan);
  EXPECT_EQ(run.status, 2);
  EXPECT_LT(run.err.size(), 20'000U);
  EXPECT_THAT(run.err, HasSubstr("more mistakes"));
  EXPECT_LT(orrery(small("--etp " + std::string(100'000, 'x'))).err.size(), 1000U);
}

TEST(Simulate, OptionWithoutItsValueIsAMistake) {
  const Outcome run = orrery("simulate --model");
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.err, HasSubstr("--model"));
}

TEST(Simulate, MistakesInAPlanFileNameFileAndLine) {
  const Folder folder;
  const std::string plan = folder.write("bad.yaml", "tp: 2\npp: zwei\nglobal_bach: 16\n");
  const Outcome run = orrery("simulate --model gpt2 --machine dgx-a100-80g --plan " + plan);
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.err, HasSubstr(plan + ":2: pp: found 'zwei'"));
  EXPECT_THAT(run.err, AllOf(HasSubstr(plan + ":3: "), HasSubstr("did you mean 'global_batch'")));
}

TEST(Simulate, PlanThatDoesNotSuitTheModelIsRefusedWithEveryReason) {
  const Outcome run = orrery(
      "simulate --model gpt2 --machine dgx-a100-80g --tp 5 --pp 7 --global-batch 3 "
      "--microbatch 2 --devices 64");
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.err, AllOf(HasSubstr("tp"), HasSubstr("pp"), HasSubstr("global-batch"),
                             HasSubstr("devices: found '64'")));
}

TEST(Simulate, WhatDoesNotFitNeedsAllowOom) {
  const std::string huge = "simulate --model gpt3-175b --machine dgx-a100-80g --tp 8 ";
  const Outcome refused = orrery(huge);
  EXPECT_EQ(refused.status, 2);
  EXPECT_THAT(refused.out, IsEmpty());
  const Outcome allowed = orrery(huge + "--allow-oom");
  EXPECT_EQ(allowed.status, 0) << allowed.err;
  EXPECT_THAT(allowed.out, HasSubstr("DOES NOT FIT"));
}

TEST(Simulate, VerboseTimesThePasses) {
  const Outcome run = orrery(small("--verbose"));
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, AllOf(HasSubstr("pipeline"), HasSubstr("fuse")));
  EXPECT_THAT(orrery(small()).out, Not(HasSubstr("fuse")));
}

TEST(Simulate, FullStandardOutputIsAFailure) {
  const Folder folder;
  const std::string command =
      std::string(ORRERY_BINARY) + " " + small() + " >/dev/full 2>" + (folder / "err");
  EXPECT_EQ(WEXITSTATUS(std::system(command.c_str())), 1);
  EXPECT_THAT(content(folder / "err"), HasSubstr("standard output"));
}

TEST(Simulate, APriceGivesACostThatIsProportionalToIt) {
  const std::string step =
      "simulate --model gpt2 --machine dgx-a100-80g --dp 4 --global-batch 8 --json";
  const auto cost = [&](const std::string& price) {
    const Outcome run = orrery(step + " --price-per-hour " + price);
    EXPECT_EQ(run.status, 0) << run.err;
    return nlohmann::json::parse(run.out).at("cost").at("per_step").get<double>();
  };
  EXPECT_DOUBLE_EQ(cost("3"), 2 * cost("'1.5 USD'"));
  const Outcome wrong = orrery(step + " --price-per-hour cheap");
  EXPECT_EQ(wrong.status, 2);
  EXPECT_THAT(wrong.err, HasSubstr("--price-per-hour: found 'cheap'"));
  const Outcome much = orrery(step + " --price-per-hour 1e308");
  EXPECT_EQ(much.status, 2);
  EXPECT_THAT(much.err, HasSubstr("--price-per-hour: found '1e308', expected at most 1e12"));
}

/// All but the last line, which says how long it took.
TEST(Tour, ShowsWhatTheMainJobPrints) {
  const Outcome run =
      orrery(std::string("simulate --model gpt3-175b --machine dgx-a100-80g ") +
             "--devices 1024 --plan " + ORRERY_SOURCE_DIR + "/configs/plans/gpt3-175b-1024.yaml");
  const std::string end = "\nSimulated 8 of 1,024 ranks";
  ASSERT_NE(run.out.find(end), std::string::npos);
  const std::string tour = content(std::string(ORRERY_SOURCE_DIR) + "/docs/tour.md");
  EXPECT_THAT(tour, HasSubstr("```\n" + run.out.substr(0, run.out.find(end) + end.size())));
}

}  // namespace
}  // namespace orrery::testing
