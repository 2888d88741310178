// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "machine/machine.h"

namespace orrery::machine {
namespace {

using ::testing::HasSubstr;

Result<Machine> machine_by_peers(const std::string& kind, const std::string& points) {
  const std::string text =
      "name: m\ndevice: {name: d, units: 1, peak: {bf16: 1 TFLOP/s}, memory: [{name: h, capacity: "
      "1 GB, bandwidth: 1 GB/s}]}\nnetwork:\n  - {name: n, kind: " +
      kind + ", size: 8, bandwidth: 1 GB/s, latency: 1 us, bandwidth_by_peers: [" + points + "]}\n";
  return parse_config(text, "m.yaml", ConfigSyntax::yaml).and_then(parse_machine);
}

std::string mistakes_by_peers(const std::string& kind, const std::string& points) {
  const auto machine = machine_by_peers(kind, points);
  return machine ? "" : machine.error().to_string();
}

TEST(BandwidthByPeers, FallsWithMorePeersAndIsReadBackEqual) {
  const auto good = machine_by_peers("switch", "{peers: 3, share: 0.9}, {peers: 7, share: 0.5}");
  ASSERT_TRUE(good) << good.error().to_string();
  EXPECT_EQ(good->network[0].bandwidth_by_peers.size(), 2U);
  EXPECT_EQ(
      parse_config(to_yaml(*good), "m.yaml", ConfigSyntax::yaml).and_then(parse_machine).value(),
      *good);
  EXPECT_THAT(mistakes_by_peers("switch", "{peers: 1, share: 1}, {peers: 3, share: 1.5}"),
              ::testing::AllOf(HasSubstr("2 or more, rising"), HasSubstr("at most 1")));
  EXPECT_THAT(mistakes_by_peers("switch", "{peers: 7, share: 0.5}, {peers: 8, share: 0.6}"),
              HasSubstr("at most 0.5: more peers do not get more"));
  EXPECT_THAT(mistakes_by_peers("ring", "{peers: 3, share: 0.5}"),
              HasSubstr("only devices on a switch"));
}

}  // namespace
}  // namespace orrery::machine
