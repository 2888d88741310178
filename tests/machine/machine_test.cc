// SPDX-License-Identifier: Apache-2.0
#include "machine/machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "machine/describe.h"

namespace orrery {
namespace {

using ::testing::HasSubstr;

Machine load(const std::string& name) {
  auto machine = load_machine(name);
  EXPECT_TRUE(machine.has_value()) << machine.error().to_string();
  return machine.value_or(Machine{});
}

std::string mistakes_of(const std::string& text) {
  const auto machine = parse_machine(parse_config(text, "m.yaml", ConfigSyntax::yaml).value());
  EXPECT_FALSE(machine.has_value());
  return machine.has_value() ? "" : machine.error().to_string();
}

TEST(Machine, EveryNumberOfEveryShippedFileHasAnOrigin) {
  const auto names = list_configs("machines");
  EXPECT_GE(names.size(), 5U);
  for (const std::string& name : names) {
    const Machine machine = load(name);
    EXPECT_EQ(machine.name, name);
    for (const auto& [field, value] : fields_of(machine)) {
      EXPECT_NE(origin_of(machine, field), "") << name << ": " << field << " = " << value;
    }
  }
}

TEST(Machine, EveryOriginNamesAFieldThatExists) {
  for (const std::string& name : list_configs("machines")) {
    const Machine machine = load(name);
    for (const auto& [prefix, origin] : machine.origins) {
      bool used = false;
      for (const auto& [field, value] : fields_of(machine)) {
        used = used || field == prefix || field.rfind(prefix + ".", 0) == 0;
      }
      EXPECT_TRUE(used) << name << ": " << prefix;
    }
  }
}

TEST(Machine, LinksTimesRateIsTheBandwidthOfOneDirection) {
  EXPECT_EQ(load("dgx-a100-80g").network[0].bandwidth, 25_GBps * 12);
  EXPECT_EQ(load("dgx-h100").network[0].bandwidth, 25_GBps * 18);
  EXPECT_EQ(load("dgx-v100").network[0].bandwidth, 25_GBps * 6);
}

TEST(Machine, BothDirectionsTogetherAreTheVendorsFigure) {
  EXPECT_EQ(load("dgx-a100-80g").network[0].bandwidth * 2, 600_GBps);
  EXPECT_EQ(load("dgx-h100").network[0].bandwidth * 2, 900_GBps);
}

TEST(Machine, NodeAdaptersAreSharedByItsDevices) {
  EXPECT_EQ(load("dgx-a100-80g").network[1].bandwidth, Bandwidth(8 * 200e9 / 8 / 8));
  EXPECT_EQ(load("vtrain-a100").network[1].bandwidth, Bandwidth(4 * 200e9 / 8 / 8));
  EXPECT_EQ(load("frontier").network[2].bandwidth, Bandwidth(100e9 / 8));
}

TEST(Machine, DevicesFillInnerDimensionsFirst) {
  const Machine machine = load("dgx-a100-80g");
  const Machine cluster = with_devices(machine, 1024).value();
  EXPECT_EQ(cluster.network[0].size, 8);
  EXPECT_EQ(cluster.network[1].size, 128);
  const Machine half = with_devices(machine, 4).value();
  ASSERT_EQ(half.network.size(), 1U);
  EXPECT_EQ(half.network[0].size, 4);
  EXPECT_EQ(with_devices(machine, 8).value().network.size(), 1U);
}

TEST(Machine, DevicesThatDoNotFillNodesAreRefused) {
  const auto result = with_devices(load("dgx-a100-80g"), 12);
  ASSERT_FALSE(result.has_value());
  EXPECT_THAT(result.error().to_string(), HasSubstr("nvlink 8, infiniband any"));
}

TEST(Machine, MoreDevicesThanThereAreAreRefused) {
  Machine machine = load("dgx-a100-80g");
  machine.network.pop_back();
  EXPECT_FALSE(with_devices(machine, 16).has_value());
}

TEST(Machine, ATorusIsOneRingPerExtent) {
  Machine machine = load("dgx-a100-80g");
  NetworkDimension torus;
  torus.name = "ici";
  torus.kind = DimensionKind::torus;
  torus.shape = {4, 2};
  torus.size = 8;
  torus.bandwidth = 100_GBps;
  machine.network = {torus};
  const Machine expanded = with_devices(machine, 8).value();
  ASSERT_EQ(expanded.network.size(), 2U);
  EXPECT_EQ(expanded.network[0].kind, DimensionKind::ring);
  EXPECT_EQ(expanded.network[0].name, "ici.0");
  EXPECT_EQ(expanded.network[1].size, 2);
  EXPECT_EQ(expanded.network[1].bandwidth, 50_GBps);
  EXPECT_FALSE(with_devices(machine, 4).has_value());
}

TEST(Machine, EveryMistakeIsReportedAtOnce) {
  const std::string text = mistakes_of(R"(name: m
device:
  name: d
  units: 0
  peak: {bf61: 1 TFLOP/s}
  memory:
    - {name: hbm, capacity: 80, bandwidth: 1 GB/s}
network:
  - {name: a, kind: swich, size: 8, bandwidth: 1 GB/s, latency: 1 us}
  - {name: b, kind: torus, shape: [2, 0], bandwidth: 1 GB/s, latency: 1 us}
colour: red
)");
  EXPECT_THAT(text,
              HasSubstr("m.yaml:4: device.units: found '0', expected a whole number above 0"));
  EXPECT_THAT(text, HasSubstr("m.yaml:5: device.peak.bf61: unknown field (did you mean 'bf16'?)"));
  EXPECT_THAT(text, HasSubstr("m.yaml:7: device.memory[0].capacity: found '80', expected a size"));
  EXPECT_THAT(text, HasSubstr("m.yaml:9: network[0].kind: found 'swich'"));
  EXPECT_THAT(text, HasSubstr("did you mean 'switch'?"));
  EXPECT_THAT(text, HasSubstr("m.yaml:10: network[1].shape"));
  EXPECT_THAT(text, HasSubstr("m.yaml:11: colour: unknown field"));
}

TEST(Machine, OnlyTheOutermostDimensionMayBeOpen) {
  EXPECT_THAT(mistakes_of(R"(name: m
device: {name: d, units: 1, peak: {bf16: 1 TFLOP/s}, memory: [{name: h, capacity: 1 GB, bandwidth: 1 GB/s}]}
network:
  - {name: a, kind: switch, size: 0, bandwidth: 1 GB/s, latency: 1 us}
  - {name: a, kind: switch, size: 4, bandwidth: 1 GB/s, latency: 1 us}
)"),
              ::testing::AllOf(HasSubstr("only the outermost may be open"),
                               HasSubstr("different names; 'a' occurs twice")));
}

}  // namespace
}  // namespace orrery
