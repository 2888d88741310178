// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <tuple>

#include "command.h"

namespace orrery::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(KernelCommands, OneGemmAsJson) {
  const Outcome run = orrery("gemm --machine dgx-h100 --m 4096 --n 4096 --k 4096 --json");
  ASSERT_EQ(run.status, 0) << run.err;
  const auto json = nlohmann::json::parse(run.out);
  EXPECT_GT(json.at("time_s"), 139e-6);  // 2 x 4096^3 FLOP at the peak, 989 TFLOP/s
  EXPECT_EQ(json.at("bound"), "compute");
}

TEST(KernelCommands, WhatIsMissingIsNotZero) {
  const Outcome gemm = orrery("gemm --machine dgx-h100 --n 8 --k 0");
  EXPECT_THAT(gemm.err, AllOf(HasSubstr("--m: missing; expected a whole number"),
                              HasSubstr("--k: found '0'"), ::testing::Not(HasSubstr("--n"))));
  const Outcome attention = orrery("attention --machine dgx-h100");
  EXPECT_THAT(attention.err, AllOf(HasSubstr("--heads: missing"), HasSubstr("--queries: missing"),
                                   ::testing::Not(HasSubstr("--kv-heads"))));
}

TEST(KernelCommands, ABackwardWritesNoCache) {
  const std::string backward =
      "attention --machine dgx-h100 --heads 32 --head-dim 128 --queries 512 --backward ";
  EXPECT_FALSE(nlohmann::json::parse(orrery(backward + "--json").out).at("cache").get<bool>());
  EXPECT_THAT(orrery(backward + "--cache true").err, HasSubstr("--cache: goes without --backward"));
}

TEST(KernelCommands, AMisspeltColumnIsAMistake) {
  const Folder folder;
  for (const auto& [command, header, meant] :
       {std::tuple("gemm", "typ,m,n,k\nfp8,8,8,8\n", "typ: unknown column (did you mean 'type'?)"),
        {"attention", "batch,heads,kv_heds,queries,head_dim\n1,32,8,4096,128\n",
         "kv_heds: unknown column (did you mean 'kv_heads'?)"},
        {"moe", "num_tokens,hidden_size,inter_size,topk,num_experts,distributon\n8,64,64,2,8,x\n",
         "distributon: unknown column (did you mean 'distribution'?)"}}) {
    const Outcome run = orrery(std::string(command) + " --machine dgx-h100 --file " +
                               folder.write("rows.csv", header));
    EXPECT_EQ(run.status, 2);
    EXPECT_THAT(run.err, HasSubstr(std::string("rows.csv:1: ") + meant));
  }
}

TEST(KernelCommands, AFileOfThem) {
  const Folder folder;
  const std::string file =
      folder.write("rows.csv", "type,m,n,k\nbf16,1,4096,4096\nfp8,8192,8192,8192\n");
  const Outcome run = orrery("gemm --machine dgx-h100 --json --file " + file);
  ASSERT_EQ(run.status, 0) << run.err;
  const auto rows = nlohmann::json::parse(run.out).at("rows");
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].at("bound"), "memory");
  EXPECT_EQ(rows[1].at("bound"), "compute");
  const Outcome both = orrery("gemm --machine dgx-h100 --m 1 --file " + file);
  EXPECT_EQ(both.status, 2);
  EXPECT_THAT(both.err, HasSubstr("--m: contradicts --file"));
}

TEST(KernelCommands, AttentionOfADecodeStepIsBoundByMemory) {
  const Outcome run = orrery(
      "attention --machine dgx-h100 --batch 64 --heads 32 --kv-heads 8 --head-dim 128 "
      "--queries 1 --keys 4096");
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("memory"));
}

TEST(KernelCommands, AProductOnASystolicArray) {
  // 256 x 4096 x 1024 on 256 x 256 os: 16 folds of 1024 + 510 cycles at 1 GHz.
  const std::string shape = "gemm --device systolic:256x256:os --m 256 --n 4096 --k 1024 --json";
  const auto json = nlohmann::json::parse(orrery(shape).out);
  EXPECT_EQ(json.at("cycles"), 24544);
  EXPECT_EQ(json.at("stall_cycles"), 0);
  EXPECT_NEAR(json.at("utilization"), 256.0 * 4096 * 1024 / 24544 / 65536, 1e-12);
  EXPECT_NEAR(json.at("time_s"), 24.544e-6, 1e-12);
  EXPECT_GT(json.at("energy_j"), 0);
  const auto compat = nlohmann::json::parse(orrery(shape + " --compat scale-sim").out);
  EXPECT_EQ(compat.at("cycles"), 24543);
  EXPECT_NEAR(compat.at("time_s"), 24.543e-6, 1e-12);
  EXPECT_NEAR(compat.at("flops_per_s"), 2.0 * 256 * 4096 * 1024 / 24.543e-6, 1e6);
  const auto sparse = nlohmann::json::parse(orrery(shape + " --sparsity 2:4").out);
  EXPECT_EQ(sparse.at("cycles"), 16 * (512 + 510));
  EXPECT_NEAR(sparse.at("time_s"), 16.352e-6, 1e-12);
  const auto slow = nlohmann::json::parse(orrery(shape + " --bandwidth '10 GB/s'").out);
  EXPECT_GT(slow.at("stall_cycles"), 0);
  EXPECT_EQ(slow.at("bound"), "memory");
  const Outcome bad = orrery("gemm --device systolic:256:os --sparsity 5:4 --m 1 --n 1 --k 1");
  EXPECT_EQ(bad.status, 2);
  EXPECT_THAT(bad.err, HasSubstr("--device: found 'systolic:256:os'"));
}

TEST(KernelCommands, ScaleSimsFilesUnchanged) {
  const Folder folder;
  const std::string configuration = folder.write(
      "a.cfg",
      "[general]\nrun_name = a\n[architecture_presets]\nArrayHeight:16\nArrayWidth:16\n"
      "IfmapSramSzkB:64\nFilterSramSzkB:64\nOfmapSramSzkB:64\nDataflow:os\nBandwidth:10\n"
      "[run_presets]\nInterfaceBandwidth: CALC\n");
  const std::string topology = folder.write("t.csv", "Layer,M,N,K,\ng1,64,64,64,\n");
  const Outcome run =
      orrery("gemm --scale-sim " + configuration + " " + topology + " --compat scale-sim --json");
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(nlohmann::json::parse(run.out).at("cycles"), 1503);  // a public case
  EXPECT_THAT(orrery("gemm --scale-sim " + configuration).err, HasSubstr("topology"));
  EXPECT_THAT(orrery("gemm --scale-sim " + configuration + " " + topology + " --m 4").err,
              HasSubstr("contradicts --scale-sim"));
}

TEST(KernelCommands, EveryMistakeIsNamed) {
  const Outcome run = orrery("gemm --machine dgx-h1000 --m x --n 4 --k 4");
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.err,
              AllOf(HasSubstr("--machine: found 'dgx-h1000'"), HasSubstr("--m: found 'x'")));
}

}  // namespace
}  // namespace orrery::testing
