// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "command.h"

namespace orrery::testing {
namespace {

using ::testing::HasSubstr;

TEST(Fuse, EveryPairIsNoSlowerAndSendsNoMore) {
  const Outcome run = orrery(
      "fuse --machine dgx-h100 --pair all --ranks 4 --dp-groups 2 --tokens 4096 --width 4096 "
      "--json");
  ASSERT_EQ(run.status, 0) << run.err;
  const auto cases = nlohmann::json::parse(run.out).at("cases");
  ASSERT_EQ(cases.size(), 6U);
  for (const auto& one : cases) {
    SCOPED_TRACE(one.at("name"));
    EXPECT_LE(one.at("time_after_s"), one.at("time_before_s"));
    EXPECT_LE(one.at("bytes_after"), one.at("bytes_before"));
  }
  // tp+sp: 2 M (N-1)/N -> M (N-1)/N with M = 4096 x 4096 x 4 bytes, N = 4.
  EXPECT_EQ(cases[0].at("bytes_before"), 2 * 3 * 16777216);
  EXPECT_EQ(cases[0].at("bytes_after"), 3 * 16777216);
}

TEST(Fuse, WhereManyPeersReachLessTheBaseIsKeptAndThePublishedFusionLoses) {
  const Folder folder;
  const std::string file = folder.write(
      "crowded.yaml",
      "name: crowded\ndevice: {name: d, units: 1, peak: {bf16: 1 TFLOP/s}, memory: [{name: h, "
      "capacity: 1 GB, bandwidth: 1 GB/s}]}\nnetwork:\n  - {name: n, kind: switch, size: 8, "
      "bandwidth: 1 GB/s, latency: 0 s, bandwidth_by_peers: [{peers: 3, share: 0.5}]}\n");
  const Outcome run = orrery("fuse --machine " + file +
                             " --pair pp+ep --ranks 4 --tokens 1000 --width 1000 --top-k 16 ");
  ASSERT_EQ(run.status, 0) << run.err;
  // 1 + 6 ms against 8 (tests/collective/layout).
  EXPECT_THAT(run.out, HasSubstr("0.875x, slower than not fused"));
}

TEST(Fuse, TimesBeyondTheClockAreAMistake) {
  const Folder folder;
  const std::string file = folder.write(
      "still.yaml",
      "name: still\ndevice: {name: d, units: 1, peak: {bf16: 1 TFLOP/s}, memory: [{name: h, "
      "capacity: 1 GB, bandwidth: 1 GB/s}]}\nnetwork:\n  - {name: n, kind: switch, size: 8, "
      "bandwidth: 1e-300 B/s, latency: 0 s}\n");
  for (const char* how : {"--pair tp+sp --ranks 4", "--pair all --ranks 4 --json",
                          "--mesh tp=4 --shape 64x64 --from sums --to copies"}) {
    const Outcome run = orrery("fuse --machine " + file + " " + how);
    EXPECT_NE(run.status, 0) << how;
    EXPECT_THAT(run.err, HasSubstr("takes longer than 106 days")) << how;
    EXPECT_EQ(run.out, "") << how;
  }
}

TEST(Fuse, AnyChangeOfLayout) {
  const Outcome run =
      orrery("fuse --machine dgx-h100 --mesh tp=4 --shape 64x64 --from sums --to 1 --json");
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("reduce_scatter tp"));
  const Outcome bad = orrery("fuse --machine dgx-h100 --mesh tp=4 --shape 64x64 --from sum --to 2");
  EXPECT_EQ(bad.status, 2);
  EXPECT_THAT(bad.err, HasSubstr("--from: found 'sum'"));
  EXPECT_THAT(bad.err, HasSubstr("--to: found '2'"));
  const Outcome never =
      orrery("fuse --machine dgx-h100 --mesh tp=4 --shape 64x64 --from copies --to sums");
  EXPECT_EQ(never.status, 2);
  EXPECT_THAT(never.err, HasSubstr("copies do not become sums"));
  const Outcome twice =
      orrery("fuse --machine dgx-h100 --mesh tp=4,tp=2 --shape 64x64 --from copies,sums --to 0,1");
  EXPECT_EQ(twice.status, 2);
  EXPECT_THAT(twice.err,
              HasSubstr("--mesh: found 'tp=4,tp=2', expected every axis once: 'tp' comes twice"));
  const Outcome large =
      orrery("fuse --machine dgx-h100 --pair tp+sp --tokens 1000000000000 --width 1000000");
  EXPECT_EQ(large.status, 2);  // not bytes below 0
  EXPECT_THAT(large.err, HasSubstr("--tokens: found '1000000000000'"));
  EXPECT_THAT(orrery("fuse --model gpt2 --machine dgx-h100 --devices 8 --pair tp+sp").err,
              ::testing::AllOf(HasSubstr("--model: contradicts --pair, which says"),
                               HasSubstr("--devices: contradicts --pair")));
  EXPECT_THAT(orrery("fuse --machine dgx-h100 --mesh tp=4 --from sums --to 0 --width 7").err,
              HasSubstr("--width: contradicts --mesh"));
  EXPECT_THAT(
      orrery("fuse --model gpt2 --machine dgx-h100 --ranks 2 --shape 8x8").err,
      ::testing::AllOf(HasSubstr("--ranks: contradicts"), HasSubstr("--shape: goes with --mesh")));
}

TEST(Fuse, SumsThatLeaveAStageBecomeSlices) {
  const std::string plan =
      " --model gpt-7.5b --machine dgx-a100-80g --tp 8 --pp 4 --dp 1 --global-batch 8 "
      "--sequence-parallel false";
  const Outcome run = orrery("fuse" + plan + " --json");
  ASSERT_EQ(run.status, 0) << run.err;
  const auto json = nlohmann::json::parse(run.out);
  bool fused = false;
  for (const auto& one : json.at("places")) {
    fused = fused || one.at("fused").get<bool>();
    EXPECT_NE(one.at("fused").get<bool>(), !one.at("reason").get<std::string>().empty());
  }
  EXPECT_TRUE(fused) << run.out;
  EXPECT_LT(json.at("step_time_after_s"), json.at("step_time_before_s"));
  const Outcome simulated = orrery("simulate" + plan + " --fuse --json");
  ASSERT_EQ(simulated.status, 0) << simulated.err;
  EXPECT_EQ(nlohmann::json::parse(simulated.out).at("step_time_s"), json.at("step_time_after_s"));
  const Outcome skipped = orrery("simulate" + plan + " --fuse --skip communication --json");
  ASSERT_EQ(skipped.status, 0) << skipped.err;
  EXPECT_EQ(nlohmann::json::parse(skipped.out).at("step_time_s"), json.at("step_time_before_s"));
}

}  // namespace
}  // namespace orrery::testing
