// SPDX-License-Identifier: Apache-2.0
#include "machine/machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "machine/describe.h"
#include "machine/slice.h"

namespace orrery::machine {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Machine load_text(const std::string& name) {
  auto machine = load_machine(name);
  EXPECT_TRUE(machine.has_value()) << machine.error().to_string();
  return machine.value_or(Machine{});
}

std::string mistakes_of(const std::string& text) {
  const auto machine = parse_machine(parse_config(text, "m.yaml", ConfigSyntax::yaml).value());
  EXPECT_FALSE(machine.has_value());
  return machine.has_value() ? "" : machine.error().to_string();
}

Machine parse_text(const std::string& text) {
  auto machine = parse_machine(parse_config(text, "m.yaml", ConfigSyntax::yaml).value());
  EXPECT_TRUE(machine.has_value()) << machine.error().to_string();
  return machine.value_or(Machine{});
}

/// The dimensions start at line 5.
std::string with_network(const std::string& dimensions, const std::string& more = "") {
  return "name: m\ndevice: {name: d, units: 1, peak: {bf16: 1 TFLOP/s}, memory: [{name: h, "
         "capacity: 1 GB, bandwidth: 1 GB/s}]}\n\nnetwork:\n" +
         dimensions + more;
}

TEST(Machine, TheTableNumbersEachOriginOnce) {
  const Machine machine = parse_text(with_network(
      "  - {name: a, kind: switch, size: 8, bandwidth: 400 Gbit/s, latency: 1 us}\n",
      "origins: {network.a: \"published: here\", network.a.latency: \"recalled: x\"}\n"));
  const std::string text = describe(machine);
  EXPECT_THAT(text,
              HasSubstr("  network.a.bandwidth                         50 GB/s         [1]\n"));
  EXPECT_THAT(text,
              HasSubstr("  network.a.latency                           1 us            [2]\n"));
  EXPECT_THAT(text, HasSubstr("\nOrigins\n   [1] published: here\n   [2] recalled: x\n"));
  EXPECT_THAT(text, HasSubstr("  device.peak.bf16                            1 TFLOP/s\n"));
}

TEST(Machine, APieceOfAMeshIsALineThatIsWrittenAndReadBack) {
  const Machine line = with_devices(load_text("dojo-d1"), 3).value();
  EXPECT_EQ(line.network[0].kind, topology::DimensionKind::mesh);
  EXPECT_EQ(parse_text(to_yaml(line)), line);
}

TEST(Machine, DevicesFillInnerDimensionsFirst) {
  const Machine machine = load_text("dgx-a100-80g");
  const Machine cluster = with_devices(machine, 1024).value();
  EXPECT_EQ(cluster.network[0].size, 8);
  EXPECT_EQ(cluster.network[1].size, 128);
  const Machine half = with_devices(machine, 4).value();
  ASSERT_EQ(half.network.size(), 1U);
  EXPECT_EQ(half.network[0].size, 4);
  EXPECT_EQ(with_devices(machine, 8).value().network.size(), 1U);
}

TEST(Machine, ARackGivesMultiplesOfItsTrays) {
  // 72 per rack in trays of 4. 256 = 4 * 64; 144 = 2 * 72; 80 = 2 * 40; 73 has no such divisor.
  Machine machine = load_text("dgx-a100-80g");
  machine.network[0].size = 72;
  machine.network[0].granule = 4;
  EXPECT_EQ(parse_text(to_yaml(machine)), machine);
  const auto sizes = [&](std::int64_t devices) {
    std::vector<std::int64_t> result;
    const Machine part = with_devices(machine, devices).value();
    for (const topology::NetworkDimension& d : part.network) {
      result.push_back(d.size);
    }
    return result;
  };
  EXPECT_EQ(sizes(256), (std::vector<std::int64_t>{64, 4}));
  EXPECT_EQ(sizes(144), (std::vector<std::int64_t>{72, 2}));
  EXPECT_EQ(sizes(80), (std::vector<std::int64_t>{40, 2}));
  EXPECT_EQ(sizes(70), (std::vector<std::int64_t>{70}));
  EXPECT_FALSE(with_devices(machine, 73).has_value());
}

TEST(Machine, DevicesThatDoNotFillNodesAreRefused) {
  const auto result = with_devices(load_text("dgx-a100-80g"), 12);
  ASSERT_FALSE(result.has_value());
  EXPECT_THAT(result.error().to_string(), HasSubstr("nvlink 8, infiniband any"));
}

TEST(Machine, MoreDevicesThanThereAreAreRefused) {
  Machine machine = load_text("dgx-a100-80g");
  machine.network.pop_back();
  EXPECT_FALSE(with_devices(machine, 16).has_value());
}

TEST(Machine, ATorusIsOneRingPerExtent) {
  Machine machine = load_text("dgx-a100-80g");
  topology::NetworkDimension torus;
  torus.name = "ici";
  torus.kind = topology::DimensionKind::torus;
  torus.shape = {4, 2};
  torus.size = 8;
  torus.bandwidth = 100_GBps;
  machine.network = {torus};
  const Machine expanded = with_devices(machine, 8).value();
  ASSERT_EQ(expanded.network.size(), 2U);
  EXPECT_EQ(expanded.network[0].kind, topology::DimensionKind::ring);
  EXPECT_EQ(expanded.network[0].name, "ici_0");
  EXPECT_EQ(expanded.network[1].size, 2);
  EXPECT_EQ(expanded.network[1].bandwidth, 50_GBps);
  // 25 GB/s a link. Half of it is the most compact block, 2 x 2: a line of two out of four has one
  // of the two links, the whole axis of two both.
  const Machine half = with_devices(machine, 4).value();
  ASSERT_EQ(half.network.size(), 2U);
  EXPECT_EQ(half.network[0].kind, topology::DimensionKind::mesh);
  EXPECT_EQ(half.network[0].bandwidth, 25_GBps);
  EXPECT_EQ(half.network[1].kind, topology::DimensionKind::ring);
  EXPECT_EQ(half.network[1].bandwidth, 50_GBps);
  // By name it is one of its rings.
  const Machine ring = with_slice(machine, "4x1").value().machine;
  ASSERT_EQ(ring.network.size(), 1U);
  EXPECT_EQ(ring.network[0].kind, topology::DimensionKind::ring);
  EXPECT_EQ(ring.network[0].bandwidth, 50_GBps);
  // Three devices of a ring of four are a line.
  const Machine line = with_devices(machine, 3).value();
  ASSERT_EQ(line.network.size(), 1U);
  EXPECT_EQ(line.network[0].kind, topology::DimensionKind::mesh);
  EXPECT_EQ(line.network[0].bandwidth, 50_GBps);
  // Two devices take the whole axis of two.
  const Machine pair = with_devices(machine, 2).value();
  ASSERT_EQ(pair.network.size(), 1U);
  EXPECT_EQ(pair.network[0].bandwidth, 50_GBps);
}

TEST(Machine, PartOfAFullyConnectedNodeHasOnlyTheLinksInside) {
  // 7 links of 10 GB/s each; four devices use three of them.
  Machine machine = load_text("dgx-a100-80g");
  machine.network[0].kind = topology::DimensionKind::fully_connected;
  machine.network[0].bandwidth = 70_GBps;
  EXPECT_EQ(with_devices(machine, 8).value().network[0].bandwidth, 70_GBps);
  EXPECT_EQ(with_devices(machine, 4).value().network[0].bandwidth, 30_GBps);
  EXPECT_EQ(with_devices(machine, 1).value().network[0].bandwidth, 70_GBps);
}

TEST(Machine, WhatIsWrittenIsReadBackEqual) {
  for (const std::string& name : list_configs("machines")) {
    const Machine machine = load_text(name);
    for (const Machine& written : {machine, with_devices(machine, 2).value()}) {
      const auto again =
          parse_machine(parse_config(to_yaml(written), name, ConfigSyntax::yaml).value());
      ASSERT_TRUE(again.has_value()) << again.error().to_string();
      EXPECT_EQ(*again, written);
    }
  }
}

TEST(Machine, ATorusIsWrittenAndReadBackEqualBeforeAndAfterItIsExpanded) {
  const Machine machine = parse_text(with_network(
      "  - {name: ici, kind: torus, shape: [4, 1, 2], bandwidth: 90 GB/s, latency: 1 us}\n",
      "origins: {network.ici: here, network.ici.latency: there}\n"));
  EXPECT_EQ(parse_text(to_yaml(machine)), machine);
  const Machine expanded = expand_shapes(machine);
  EXPECT_EQ(parse_text(to_yaml(expanded)), expanded);
  // Two extents have links: 45 GB/s each.
  EXPECT_EQ(expanded.network[2].bandwidth, 45_GBps);
  EXPECT_EQ(origin_of(expanded, "network.ici_2.bandwidth"), "here");
  EXPECT_EQ(origin_of(expanded, "network.ici_2.latency"), "there");
}

TEST(Machine, WhatIsNotKnownIsNeitherShownNorWritten) {
  const std::string dimension =
      "  - {name: a, kind: switch, size: 8, bandwidth: 1 GB/s, latency: 1 us, "
      "energy_per_byte: 10 pJ/bit}\n";
  const Machine machine = parse_text(with_network(dimension));
  EXPECT_EQ(machine.network[0].energy_per_byte, EnergyPerByte(80e-12));
  for (const std::string& text : {describe(machine), to_yaml(machine)}) {
    EXPECT_THAT(text, HasSubstr("80 pJ/B"));
    EXPECT_THAT(text, Not(HasSubstr("price_per_hour")));
    EXPECT_THAT(text, Not(HasSubstr("idle_power")));
  }
  EXPECT_EQ(parse_text(to_yaml(machine)), machine);
}

TEST(Machine, ANumberFormatHasItsOwnKernelsWhereTheFileSaysSo) {
  const std::string text =
      "name: m\ndevice: {name: d, units: 1, peak: {bf16: 1 TFLOP/s, fp8: 2 TFLOP/s}, memory: "
      "[{name: h, capacity: 1 GB, bandwidth: 1 GB/s}], kernels: {gemm_k_ramp: 5, fp8: "
      "{gemm_launch: 9 us}}}\nnetwork: [{name: a, kind: switch, size: 8, bandwidth: 1 GB/s, "
      "latency: 1 us}]\n";
  const Machine machine = parse_text(text);
  graph::Operator op;
  EXPECT_EQ(machine.device.kernels_of(op).gemm_launch, 2500_ns);
  op.type = graph::DataType::fp8;
  EXPECT_EQ(machine.device.kernels_of(op).gemm_launch, 9_us);
  EXPECT_EQ(machine.device.kernels_of(op).gemm_k_ramp, 5);
  op.block_scaled = true;
  EXPECT_EQ(machine.device.kernels_of(op).gemm_launch, 9_us);  // no fp8_block: as fp8
  compute::Device device = machine.device;
  device.format_kernels["fp8_block"].gemm_launch = 7_us;
  EXPECT_EQ(device.kernels_of(op).gemm_launch, 7_us);
  op.block_scaled = false;
  op.splits_sums = true;
  EXPECT_EQ(device.kernels_of(op).gemm_launch, 7_us);
  device.microscaling = true;  // sums in fp32
  EXPECT_EQ(device.kernels_of(op).gemm_launch, 9_us);
  EXPECT_EQ(parse_text(to_yaml(machine)), machine);
  EXPECT_THAT(describe(machine), HasSubstr("device.kernels.fp8.gemm_launch"));
}

TEST(Machine, WrongValuesNameTheirFieldAndWhatWouldBeRight) {
  const auto refuses = [](const std::string& dimensions, const std::string& message,
                          const std::string& more = "") {
    EXPECT_THAT(mistakes_of(with_network(dimensions, more)), HasSubstr(message)) << dimensions;
  };
  const std::string end = ", bandwidth: 1 GB/s, latency: 1 us}\n";
  refuses("  - {name: a.b, kind: switch, size: 8" + end, "found 'a.b', expected a name of letters");
  refuses("  - {name: a, kind: switch, size: -1" + end, "size: found '-1', expected a number of");
  refuses("  - {name: a, kind: ring" + end, "network[0].size: required, but missing");
  refuses("  - {name: a, kind: torus, size: 8" + end, "network[0].shape: required, but missing");
  refuses("  - {name: a, kind: ring, size: 8, shape: [8]" + end, "only torus and mesh have one");
  refuses("  - {name: a, kind: mesh, size: 7, shape: [4, 2]" + end, "8, the product of shape");
  refuses("  - {name: a, kind: mesh, shape: [4294967296, 4294967296]" + end, "extents above 0");
  refuses("  - {name: a, kind: torus, shape: [2, 2], nic: x" + end, "a port per link");
  refuses("  - {name: a, kind: fully_connected, size: 0" + end, "cannot be open");
  refuses("  - {name: a, kind: switch, size: 8" + end +
              "  - {name: b, kind: switch, size: 2, through: c" + end,
          "network[1].through: found 'c', expected the name of a switch inside this one");
  refuses("  - {name: a, kind: ring, size: 8" + end +
              "  - {name: b, kind: switch, size: 2, through: a" + end,
          "of kind switch only");
  refuses("  - {name: a, kind: switch, size: 8, node_bandwidth: 1 GB/s" + end,
          "network[0].node_bandwidth: found '1 GB/s', expected a rate above 0 of what the devices");
  refuses("  - {name: a, kind: switch, size: 16777216" + end + "  - {name: b, kind: ring, size: 2" +
              end,
          "at most 16777216 devices altogether");
  refuses("  - {name: a, kind: torus, shape: [1, 1, 1, 1, 1, 1, 1, 1, 1]" + end,
          "at most 8 dimensions");
  refuses("  - {name: a, kind: switch, size: 8, bandwidth: 0, latency: 1 us}\n",
          "bandwidth: found '0', expected a rate above 0");
  refuses("  - {name: a, kind: switch, size: 8, send_efficiency: 1.2" + end, "at most 1");
  refuses(
      "  - {name: a, kind: switch, size: 8, protocols: [{name: x, step_latency: 1 us, "
      "efficiency: 1.6}]" +
          end,
      "network[0].protocols[0].efficiency: found '1.6', expected a number above 0 and at most 1.5");
  refuses("  - {name: a, kind: switch, size: 8" + end, "m.yaml:6: origins.network.b: found 'x'",
          "origins: {network.b: x}\n");
  refuses("  - {name: a, kind: switch, size: 8" + end, "(did you mean 'network.a.latency'?)",
          "origins: {network.a.latencey: x}\n");
}

TEST(Machine, ValuesBeyondAnyMachineAreSlipsOfTheUnit) {
  const std::string text =
      "name: m\ndevice: {name: d, units: 1, power: 1e30 W, peak: {bf16: 1e30 FLOP/s},\n"
      "  memory: [{name: h, capacity: 1 GB, bandwidth: 1e30 B/s}],\n"
      "  kernels: {gemm_tile_load: 1e300}}\n"
      "network:\n  - {name: a, kind: switch, size: 8, bandwidth: 1 GB/s, latency: 90 min}\n";
  const std::string mistakes = mistakes_of(text);
  EXPECT_THAT(mistakes,
              HasSubstr("m.yaml:2: device.power: found '1e30 W', expected at most 1000 MW"));
  EXPECT_THAT(mistakes, HasSubstr("device.peak.bf16: found '1e30 FLOP/s', expected at most"));
  EXPECT_THAT(mistakes,
              HasSubstr("device.memory[0].bandwidth: found '1e30 B/s', expected at most"));
  EXPECT_THAT(mistakes,
              HasSubstr("device.kernels.gemm_tile_load: found '1e300', expected at most"));
  EXPECT_THAT(mistakes, HasSubstr("network[0].latency: found '90 min', expected at most 1000 s"));
}

constexpr const char* kOneDimension =
    "  - {name: a, kind: switch, size: 8, bandwidth: 1 GB/s, latency: 1 us}\n";

TEST(Machine, APoolIsReadWrittenAndReadBackEqual) {
  const Machine machine = parse_text(with_network(
      kOneDimension,
      "remote_memory: {kind: hierarchical, capacity: 1 TB, bandwidth: 100 GB/s, latency: 1 us, "
      "node_devices: 4, groups: 8, switches: 2, switch_bandwidth: 200 GB/s, fabric_bandwidth: "
      "50 GB/s, in_switch: true}\norigins: {remote_memory: here, remote_memory.groups: there}\n"));
  EXPECT_EQ(machine.remote_memory.kind, memory::RemoteKind::hierarchical);
  EXPECT_EQ(machine.remote_memory.groups, 8);
  EXPECT_EQ(machine.remote_memory.chunk, 1_MiB);
  EXPECT_EQ(origin_of(machine, "remote_memory.fabric_bandwidth"), "here");
  EXPECT_EQ(parse_text(to_yaml(machine)), machine);
  EXPECT_THAT(describe(machine), HasSubstr("remote_memory.in_switch"));
}

TEST(Machine, RemoteMemoryHasTheFieldsOfItsKindAndNoOthers) {
  const auto mistakes = [](const std::string& memory) {
    return mistakes_of(with_network(kOneDimension, "remote_memory: {" + memory + "}\n"));
  };
  EXPECT_THAT(mistakes("capacity: 1 TB"), HasSubstr("m.yaml:6: remote_memory.kind: required"));
  EXPECT_THAT(mistakes("kind: pol"), HasSubstr("did you mean 'pool'?"));
  const std::string pool = "kind: pool, capacity: 1 TB, latency: 1 us, bandwidth: ";
  EXPECT_THAT(mistakes(pool + "0 GB/s"),
              HasSubstr("remote_memory.bandwidth: found '0 GB/s', expected a rate above 0"));
  EXPECT_THAT(
      mistakes(pool + "1 GB/s, groups: 2"),
      HasSubstr("remote_memory.groups: found '2', expected nothing; a memory of kind pool"));
  EXPECT_THAT(mistakes("kind: per_node, capacity: 1 TB, latency: 1 us, bandwidth: 1 GB/s"),
              HasSubstr("remote_memory.node_devices: required, but missing"));
  EXPECT_THAT(mistakes("kind: hierarchical, groups: 0"), HasSubstr("a whole number from 1 to"));
  EXPECT_THAT(mistakes(pool + "1 GB/s, grups: 2"), HasSubstr("unknown field"));
}

TEST(Machine, AnEmptyMapNamesAllThatIsRequired) {
  EXPECT_EQ(mistakes_of("{}"),
            "m.yaml:1: name: required, but missing\n"
            "m.yaml:1: device: required, but missing\n"
            "m.yaml:1: network: required, but missing");
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
  EXPECT_THAT(
      text,
      HasSubstr("m.yaml:4: device.units: found '0', expected a whole number from 1 to 1048576"));
  EXPECT_THAT(text, HasSubstr("m.yaml:5: device.peak.bf61: unknown field (did you mean 'bf16'?)"));
  EXPECT_THAT(text, HasSubstr("m.yaml:7: device.memory[0].capacity: found '80', expected a size"));
  EXPECT_THAT(text, HasSubstr("m.yaml:9: network[0].kind: found 'swich'"));
  EXPECT_THAT(text, HasSubstr("did you mean 'switch'?"));
  EXPECT_THAT(text, HasSubstr("m.yaml:10: network[1].shape"));
  EXPECT_THAT(text, HasSubstr("m.yaml:11: colour: unknown field"));
}

TEST(Machine, OnlyTheOutermostDimensionMayBeOpen) {
  EXPECT_THAT(
      mistakes_of(R"(name: m
device: {name: d, units: 1, peak: {bf16: 1 TFLOP/s}, memory: [{name: h, capacity: 1 GB, bandwidth: 1 GB/s}]}
network:
  - {name: a, kind: switch, size: 0, bandwidth: 1 GB/s, latency: 1 us}
  - {name: a, kind: switch, size: 4, bandwidth: 1 GB/s, latency: 1 us}
)"),
      ::testing::AllOf(HasSubstr("as the outermost only"),
                       HasSubstr("network[1].name: found 'a', expected a name that no other")));
}

}  // namespace
}  // namespace orrery::machine
