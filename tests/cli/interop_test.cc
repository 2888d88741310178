// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "command.h"

namespace orrery::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

constexpr const char* kLine =
    " -- torchrun --nnodes 2 --nproc-per-node 8 pretrain_gpt.py --tensor-model-parallel-size 2 "
    "--micro_batch_size 1 --global-batch-size 32 --seq-length 1024 --bf16 --num-layers 12 "
    "--hidden-size 768 --num-attention-heads 12 --vocab-size 50257 --lr 1e-4 "
    "--ddp-pad-buckets-for-high-nccl-busbw";

TEST(Import, ALaunchLineBecomesAPlanAndAModelThatSimulate) {
  const Folder folder;
  const Outcome run = orrery("import megatron --model-out " + (folder / "model.json") + kLine);
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, StartsWith("# From Megatron-LM's arguments, for 16 devices.\n"
                                  "#   --ddp-pad-buckets-for-high-nccl-busbw: accepted; "));
  const std::string plan = folder.write("plan.yaml", run.out);
  const Outcome step = orrery("simulate --machine dgx-a100-80g --json --plan " + plan +
                              " --model " + (folder / "model.json"));
  ASSERT_EQ(step.status, 0) << step.err;
  EXPECT_EQ(nlohmann::json::parse(step.out)["devices"], 16);
}

TEST(Import, JsonIsThePlan) {
  const Outcome run = orrery(std::string("import megatron --json --host-dispatch 5us") + kLine);
  ASSERT_EQ(run.status, 0) << run.err;
  const auto plan = nlohmann::json::parse(run.out);
  EXPECT_EQ(plan["tp"], 2);
  EXPECT_EQ(plan["dp"], 8);
  EXPECT_EQ(plan["host_dispatch"], "5 us");
  EXPECT_THAT(run.err, HasSubstr("--ddp-pad-buckets-for-high-nccl-busbw: accepted"));
}

TEST(Import, StrictRefusesWhatIsOnlyNoted) {
  const Outcome run = orrery(std::string("import megatron --strict") + kLine);
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.out, IsEmpty());
  EXPECT_THAT(run.err, HasSubstr("--ddp-pad-buckets-for-high-nccl-busbw"));
}

TEST(Import, ConfigurationsAreFiles) {
  const Folder folder;
  const std::string file = folder.write(
      "ds.json", R"({"train_micro_batch_size_per_gpu": 2, "zero_optimization": {"stage": 3}})");
  const Outcome run = orrery("import deepspeed --devices 8 --sequence 4096 --json " + file);
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(nlohmann::json::parse(run.out)["zero"], 3);
  EXPECT_EQ(nlohmann::json::parse(run.out)["sequence"], 4096);
  EXPECT_THAT(orrery("import deepspeed").err, HasSubstr("FILE is a ds_config.json"));
  EXPECT_THAT(orrery("import deepseed x").err, HasSubstr("did you mean 'deepspeed'"));
  EXPECT_THAT(orrery("simulate -- x").err, HasSubstr("unexpected argument 'x' after --"));
}

TEST(Import, TorchtitanFilesAreToml) {
  const Folder folder;
  const std::string file = folder.write(
      "job.toml", "[training]\nlocal_batch_size = 2\n[activation_checkpoint]\nmode = \"full\"\n");
  const Outcome run = orrery("import torchtitan --devices 8 --json " + file);
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(nlohmann::json::parse(run.out)["zero"], 3);
  EXPECT_EQ(nlohmann::json::parse(run.out)["global_batch"], 16);
  const Outcome back = orrery("export torchtitan --plan llama-3-8b-8 --model llama-3-8b");
  ASSERT_EQ(back.status, 1) << back.err;
  EXPECT_THAT(back.err, HasSubstr("not stated: recompute: the plan has selective"));
  EXPECT_THAT(back.out, HasSubstr("data_parallel_shard_degree = 8\n"));
  EXPECT_THAT(back.out, HasSubstr("#   recompute: the plan has selective; read back it is none; "));
}

/// examples/import_megatron as its README says.
TEST(Import, TheExampleRuns) {
  const Folder folder;
  const std::string out = folder / "out";
  const std::string command = "ORRERY=" + std::string(ORRERY_BINARY) + " " + ORRERY_SOURCE_DIR +
                              "/examples/import_megatron/run.sh >" + out;
  ASSERT_EQ(std::system(command.c_str()), 0);
  const std::string text = content(out);
  EXPECT_THAT(text,
              HasSubstr("tp 8 with sequence parallelism, pp 8 (interleaved x 3 chunks), dp 1"));
  EXPECT_THAT(text, HasSubstr("recompute full"));
  EXPECT_THAT(text, HasSubstr("torchrun --nnodes 8 --nproc-per-node 8 pretrain_gpt.py"));
  EXPECT_THAT(text, HasSubstr("  --recompute-granularity full"));
}

TEST(Export, APlanGoesThroughEveryFormat) {
  const Folder folder;
  const Outcome line = orrery(
      "export megatron --plan gpt3-175b-1024 --model gpt3-175b --machine dgx-a100-80g --strict");
  ASSERT_EQ(line.status, 0) << line.err;
  EXPECT_THAT(line.out,
              StartsWith("torchrun --nnodes 128 --nproc-per-node 8 pretrain_gpt.py \\\n"));
  const std::string file = folder.write("launch.sh", line.out);
  const Outcome back = orrery("import megatron --json " + file);
  ASSERT_EQ(back.status, 0) << back.err;
  auto plan = nlohmann::json::parse(orrery("show plan gpt3-175b-1024 --json").out);
  plan["sequence"] = 2048;  // the model's, which the line states
  plan["as_of"] = 0;        // and nothing is open
  auto read = nlohmann::json::parse(back.out);
  read["pipeline_send"] = plan["pipeline_send"];  // means nothing with sequence parallelism
  EXPECT_EQ(read, plan);
}

TEST(Export, LossesAreNamedAndStrictRefusesThem) {
  const Outcome run = orrery("export deepspeed --plan llama-3-8b-8");
  ASSERT_EQ(run.status, 1) << run.err;
  EXPECT_TRUE(nlohmann::json::accept(run.out));
  EXPECT_THAT(run.err, HasSubstr("not stated: attention: the plan has flash"));
  const Outcome strict = orrery("export deepspeed --plan llama-3-8b-8 --strict");
  EXPECT_EQ(strict.status, 2);
  EXPECT_THAT(strict.out, IsEmpty());
  EXPECT_EQ(orrery("export megatron --plan llama-3-8b-8 --devices 9").status, 2);
  const Outcome json = orrery("export deepspeed --plan llama-3-8b-8 --json");
  EXPECT_EQ(nlohmann::json::parse(json.out)["lost"].size(), 3U);
}

TEST(Interop, TextFieldsOfPlansAreChecked) {
  const std::string plan = " --tp 2 --global-batch 2";
  for (const auto& [arguments, expected] :
       {std::pair("export megatron --stage-layers none", "--stage-layers: found 'none'"),
        {"show plan --order NaN", "--order: found 'NaN', expected tp, cp, dp and pp in some order"},
        {"export deepspeed --recompute-modules 'a;b'", "--recompute-modules: found 'a;b'"},
        {"validate --table megatron_sc21_table1 --order NaN", "--order: found 'NaN'"}}) {
    const Outcome run = orrery(arguments + (std::string(arguments).starts_with("v") ? "" : plan));
    EXPECT_EQ(run.status, 2) << arguments;
    EXPECT_THAT(run.err, HasSubstr(expected)) << arguments;
  }
}

TEST(Interop, FlagsThatNothingReadsAreMistakes) {
  const Folder folder;
  const std::string run = folder.write("a.json", "{}");
  const Outcome compare = orrery("compare " + run + " " + run + " --topology nonsense");
  EXPECT_EQ(compare.status, 2);
  EXPECT_THAT(compare.err, HasSubstr("--topology"));
  const Outcome fit = orrery("calibrate collectives " + run + " --machine dgx-h100 --type nan");
  EXPECT_THAT(fit.err, HasSubstr("--type: goes with calibrate gemm"));
}

}  // namespace
}  // namespace orrery::testing
