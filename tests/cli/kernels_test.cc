// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

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

TEST(KernelCommands, EveryMistakeIsNamed) {
  const Outcome run = orrery("gemm --machine dgx-h1000 --m x --n 4 --k 4");
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.err,
              AllOf(HasSubstr("--machine: found 'dgx-h1000'"), HasSubstr("--m: found 'x'")));
}

}  // namespace
}  // namespace orrery::testing
