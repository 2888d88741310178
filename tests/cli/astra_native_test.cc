// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "command.h"

namespace orrery::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

/// A reference case of ASTRA-sim, natively.
Outcome native(const std::string& name, const std::string& more = {}) {
  const std::string folder =
      std::string(ORRERY_SOURCE_DIR) + "/tests/compat/astra/cases/" + name + "/";
  return orrery(
      "astra --workload-configuration=" + folder + "trace --system-configuration=" + folder +
      "system.json --network-configuration=" + folder +
      "network.yml --remote-memory-configuration=" + folder + "memory.json --native " + more);
}

TEST(AstraNative, ShowsBothSideBySide) {
  const Outcome run = native("switch8_all_reduce_1MiB_direct_unaware");
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, AllOf(HasSubstr("astra unaware"), HasSubstr("native"), HasSubstr("7155"),
                             HasSubstr("Limited by dimension 0")));
}

TEST(AstraNative, SevenMessagesShareOnePort) {
  // 8 NPUs behind a switch, 128 KiB each at 50 * 2^30 B/s (2441.4 ns), 1000 ns, delay 10, reduction
  // 243: all-reduce = 2 * (7 * 2441.4 + 1000) + 10 + 20 + 243 = 36452.
  const Outcome run = native("switch8_all_reduce_1MiB_direct_unaware", "--json");
  ASSERT_EQ(run.status, 0) << run.err;
  const auto json = nlohmann::json::parse(run.out);
  EXPECT_EQ(json["compat"]["cycles"], 7155);
  EXPECT_EQ(json["native"]["cycles"], 36452);
  EXPECT_NEAR(json["ratio"].get<double>(), 36452.0 / 7155, 0.001);
  EXPECT_EQ(json["ranks"].size(), 8U);
  EXPECT_EQ(json["limited_by"]["dimension"], 0);
  EXPECT_NEAR(json["dimensions"][0]["busiest_link_share"].get<double>(), 14 * 2441.4 / 36452,
              0.001);
}

TEST(AstraNative, RunsWhatAstraCannot) {
  const Outcome run = native("quirk_halving_doubling_6_npus", "--json");
  ASSERT_EQ(run.status, 0) << run.err;
  const auto json = nlohmann::json::parse(run.out);
  EXPECT_THAT(json["compat"]["error"].get<std::string>(), HasSubstr("power of two"));
  EXPECT_TRUE(json["ratio"].is_null());
  EXPECT_GT(json["native"]["cycles"].get<std::int64_t>(), 0);
}

TEST(AstraNative, GroupsAcrossDimensionsPayForEach) {
  // The slow dimension is charged: far slower than ASTRA-sim's first differing dimension.
  const std::string folder =
      std::string(ORRERY_SOURCE_DIR) + "/tests/compat/astra/cases/quirk_group_across_two_dims/";
  const Outcome run = native("quirk_group_across_two_dims",
                             "--json --comm-group-configuration=" + folder + "groups.json");
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_GT(nlohmann::json::parse(run.out)["native"]["cycles"].get<std::int64_t>(), 100'000);
}

TEST(AstraNative, OnAMachineTheListsAreStretched) {
  const Outcome run = native("switch8_all_reduce_1MiB_direct_unaware", "--machine dgx-h100");
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, AllOf(HasSubstr("dgx-h100"), HasSubstr("nvlink")));
}

TEST(AstraNative, MistakesNameFlagAndChoices) {
  const Outcome unknown = native("switch8_all_reduce_1MiB_direct_unaware", "--sharing fiar");
  EXPECT_EQ(unknown.status, 2);
  EXPECT_THAT(unknown.err, AllOf(HasSubstr("--sharing"), HasSubstr("did you mean 'fair'")));
  const Outcome machine = native("switch8_all_reduce_1MiB_direct_unaware", "--machine dgx-h10");
  EXPECT_EQ(machine.status, 2);
  EXPECT_THAT(machine.err, HasSubstr("dgx-h100"));
}

TEST(AstraNative, StoreAndForwardAndFairSharingAreChoices) {
  const auto cycles = [](const std::string& how) {
    const Outcome run = native("switch8_all_reduce_1MiB_ring_unaware", "--json " + how);
    EXPECT_EQ(run.status, 0) << run.err;
    return nlohmann::json::parse(run.out)["native"]["cycles"].get<std::int64_t>();
  };
  // A message goes over two links: another 14 * 2441 ns. A ring's step has every link to itself.
  const auto through = cycles("--forwarding cut_through");
  EXPECT_NEAR(static_cast<double>(cycles("--forwarding store_and_forward") - through), 14 * 2441.4,
              2);
  EXPECT_NEAR(static_cast<double>(cycles("--sharing fair") - through), 0, 2);
}

}  // namespace
}  // namespace orrery::testing
