// SPDX-License-Identifier: Apache-2.0
// What `orrery astra` says and takes beyond ASTRA-sim's own command: statistics, speeds, keys.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "command.h"

namespace orrery::testing {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;

const std::string kRing = "ring8_all_reduce_1MiB_ring_unaware";

Outcome run(const std::string& name, const std::string& options) {
  const std::string folder = ORRERY_SOURCE_DIR "/tests/compat/astra/cases/" + name + "/";
  return orrery("astra --workload-configuration=" + folder + "trace --system-configuration=" +
                folder + "system.json --network-configuration=" + folder +
                "network.yml --remote-memory-configuration=" + folder + "memory.json " + options);
}

json statistics_of(const std::string& name, const std::string& options) {
  const Outcome outcome = run(name, options + " --statistics --json");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  return outcome.status == 0 ? json::parse(outcome.out)["ranks"][0]["statistics"] : json{};
}

TEST(AstraStatisticsCommand, SaysWhatRanksWereBusyWithAndSent) {
  // 43,025 cycles of an all-reduce of 1 MiB on a ring of 8: 14 messages of 128 KiB from each.
  const json found = statistics_of(kRing, "");
  EXPECT_EQ(found["wall_cycles"], 43025);
  EXPECT_EQ(found["communication_cycles"], 43025);
  EXPECT_EQ(found["overlap_cycles"], 0);
  EXPECT_EQ(found["sent_bytes"], json::array({14 * 131072}));
  EXPECT_THAT(
      run(kRing, "--statistics").out,
      AllOf(HasSubstr("[statistics] [info] sys[7], Comm time: 43025\n"),
            HasSubstr("[statistics] [info] sys[0], Bytes sent into dimension 0: 1835008\n")));
}

TEST(AstraStatisticsCommand, AStragglersKernelsTakeLonger) {
  const std::string roofline = "compute_roofline_compute_bound";
  const json usual = statistics_of(roofline, "");
  const json slow = statistics_of(roofline, "--compute-speed 0=0.5");
  EXPECT_EQ(slow["gpu_cycles"], 2 * usual["gpu_cycles"].get<std::int64_t>());
  EXPECT_NEAR(usual["compute_bound"], 1, 1e-9);
  EXPECT_NEAR(slow["compute_utilisation"], 0.5, 1e-3);
  EXPECT_THAT(run(kRing, "--compute-speed 3=fast --compute-speed 7-8=1").err,
              AllOf(HasSubstr("found '3=fast', expected RANK=FACTOR"), HasSubstr("'7-8=1'")));
}

TEST(AstraStatisticsCommand, OptionsThatDoNotGoTogetherAreMistakes) {
  EXPECT_THAT(run(kRing, "--native --statistics").err, HasSubstr("not with --statistics"));
  EXPECT_THAT(run(kRing, "--network flow --network-backend=unaware").err,
              HasSubstr("--network-backend: not with --network"));
}

TEST(AstraStatisticsCommand, UnknownKeysMayBeWarnings) {
  const std::string misspelt = "quirk_unknown_system_key";
  EXPECT_EQ(run(misspelt, "").status, 2);
  const Outcome outcome = run(misspelt, "--warn-unknown-keys");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("warning: "));
  EXPECT_THAT(outcome.err, HasSubstr("endpoint-dely: unknown field, ignored"));
}

}  // namespace
}  // namespace orrery::testing
