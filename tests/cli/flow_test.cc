// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "command.h"

namespace orrery::testing {
namespace {

using ::testing::HasSubstr;

TEST(Flow, BareFlowsGiveFinishAndLoad) {
  // 16 hosts of a full tree, a permutation coloured: 1 MB at 12.5 GB/s and at most 6 us.
  const Outcome run = orrery(
      "flow --topology fat_tree:k=4 --traffic permutation --bytes 1MB --routing colour --json");
  ASSERT_EQ(run.status, 0) << run.err;
  const auto json = nlohmann::json::parse(run.out);
  ASSERT_EQ(json["flows"].size(), 16U);
  for (const auto& flow : json["flows"]) {
    EXPECT_NEAR(flow["finish_s"].get<double>(), 84e-6, 2.1e-6);
  }
  for (const auto& link : json["links"]) {
    EXPECT_NEAR(link["load"].get<double>(), 1e6, 1e-3) << link["name"];
  }
}

TEST(Flow, PacketsOfTheSameTakeLonger) {
  EXPECT_THAT(orrery("flow --topology fat_tree:k=4 --traffic incast --bytes 1MB --svg").out,
              HasSubstr("<svg"));
  const std::string rest = "flow --topology fat_tree:k=4 --traffic incast --bytes 1MB --json";
  const auto flows = nlohmann::json::parse(orrery(rest).out);
  for (const char* protocol : {"eqds", "roce"}) {
    const Outcome run = orrery(rest + " --network packet --protocol " + protocol);
    ASSERT_EQ(run.status, 0) << run.err;
    const auto packets = nlohmann::json::parse(run.out);
    EXPECT_EQ(packets["protocol"], protocol);
    EXPECT_GT(packets["end_s"].get<double>(), flows["end_s"].get<double>());
    EXPECT_LT(packets["end_s"].get<double>(), 1.05 * flows["end_s"].get<double>());
  }
}

TEST(Flow, AlikeOnesAreOneUnlessAskedOtherwise) {
  const std::string rest =
      "flow --topology fat_tree:k=4 --traffic all_to_all --bytes 1MB --routing d_mod_k --json";
  const auto folded = nlohmann::json::parse(orrery(rest).out);
  const auto all = nlohmann::json::parse(orrery(rest + " --no-fold").out);
  EXPECT_EQ(folded["pieces"], 240);
  EXPECT_LT(folded["simulated"], 10);
  EXPECT_EQ(all["simulated"], 240);
  EXPECT_EQ(folded["flows"], all["flows"]);
  EXPECT_THAT(orrery("flow --topology fat_tree:k=4 --traffic ring --network packet --no-fold").err,
              HasSubstr("--no-fold: goes with --network flow"));
}

TEST(Flow, ARowStatesItsWayAndAFileThePackets) {
  // One packet of 1000 B and a header of 100 B over 6 links of 12.5 GB/s and 1 us; its
  // acknowledgement of 100 B back: 6 * (1100 + 100) B / 12.5 GB/s + 12 us = 12.576 us.
  const std::string folder = ::testing::TempDir();
  std::ofstream(folder + "/ways.csv")
      << "source,target,bytes,via\nhost0,host15,1000,aggregation1 core3\n";
  std::ofstream(folder + "/packets.yaml") << "{protocol: eqds, wire: 1100 B, header: 100 B}\n";
  const std::string rest = "flow --topology fat_tree:k=4 --json --network packet --packet " +
                           folder + "/packets.yaml --flows " + folder + "/ways.csv";
  const Outcome run = orrery(rest);
  ASSERT_EQ(run.status, 0) << run.err;
  const auto json = nlohmann::json::parse(run.out);
  EXPECT_NEAR(json["end_s"].get<double>(), 12.576e-6, 1e-11);
  EXPECT_EQ(json["links"].size(), 6U);
  EXPECT_THAT(orrery(rest + " --protocol roce").err,
              HasSubstr("--protocol: is a field of --packet"));
}

TEST(Flow, MistakesComeTogether) {
  const Outcome run = orrery("flow --topology fat_tree:k=5 --routing spry --traffic ringg");
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.err, HasSubstr("did you mean 'spray'"));
  EXPECT_THAT(run.err, HasSubstr("did you mean 'ring'"));
  EXPECT_THAT(orrery("flow --topology fat_tree:k=5 --traffic ring").err,
              HasSubstr("an even number of ports"));
  EXPECT_THAT(orrery("flow --topology torus:shape=4x4 --traffic ring --routing colour").err,
              HasSubstr("needs a fat tree"));
  EXPECT_THAT(orrery("flow --topology fat_tree:k=4").err, HasSubstr("either --flows or --traffic"));
  EXPECT_THAT(orrery("flow --topology fat_tree:k=4 --traffic shift --stride 3 "
                     "--spray-imbalance 1.5")
                  .err,
              ::testing::AllOf(HasSubstr("--stride: goes with --traffic ring"),
                               HasSubstr("--spray-imbalance: goes with --routing spray")));
  EXPECT_THAT(orrery("flow --topology fat_tree:k=4 --flows x.csv --bytes 1MB").err,
              HasSubstr("--bytes: goes with --traffic"));
  // Of what was given, and of nothing else.
  const std::string four = "flow --topology fat_tree:k=4 --traffic shift ";
  EXPECT_EQ(orrery(four + "--paths 4").err, "--paths: goes with --network packet\n");
  EXPECT_EQ(orrery(four + "--network packet --ramp 1KiB").err,
            "--ramp: goes with --network flow: packets have it of themselves\n");
}

TEST(Flow, ShowTopologyPrintsSizesAndDraws) {
  const Outcome run = orrery("show topology fat_tree:k=4 --json");
  ASSERT_EQ(run.status, 0) << run.err;
  const auto json = nlohmann::json::parse(run.out);
  EXPECT_EQ(json["hosts"], 16);
  EXPECT_EQ(json["switches"], 20);
  EXPECT_EQ(json["diameter"], 6);
  EXPECT_EQ(json["bisection"], json["injection"]);
  const Outcome picture = orrery("show topology fat_tree:k=4 --svg");
  EXPECT_THAT(picture.out, HasSubstr("<svg"));
  EXPECT_THAT(picture.out, HasSubstr("core3"));
}

TEST(Flow, SteadyPhasesOfPacketsAreSkippedWhereAsked) {
  const std::string rest =
      "flow --topology fat_tree:k=4 --traffic ring --bytes 20MB --network packet --json";
  const auto all = nlohmann::json::parse(orrery(rest).out);
  const auto some = nlohmann::json::parse(orrery(rest + " --skip-steady 0.01").out);
  EXPECT_EQ(all["skipped"], 0);
  EXPECT_GT(some["skipped"].get<int>(), 1000);
  EXPECT_EQ(some["packets"], all["packets"]);
  EXPECT_NEAR(some["end_s"].get<double>() / all["end_s"].get<double>(), 1, 0.01);
  EXPECT_NE(orrery(rest + " --skip-steady 0.5").status, 0);
  EXPECT_NE(orrery("flow --topology fat_tree:k=4 --traffic ring --network flow --skip-steady 0.01")
                .status,
            0);
}

TEST(FlowCommand, TrafficThatMovesNothingIsRefused) {
  const Outcome run = orrery("flow --topology fat_tree:k=4 --traffic ring --stride 16");
  EXPECT_NE(run.status, 0);
  EXPECT_THAT(run.err, ::testing::HasSubstr("--stride: sends nothing between hosts"));
}

}  // namespace
}  // namespace orrery::testing
