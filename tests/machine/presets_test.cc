// SPDX-License-Identifier: Apache-2.0
/// Laws of the shipped machine files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "machine/compute/compute_model.h"
#include "machine/describe.h"
#include "machine/machine.h"

namespace orrery::machine {
namespace {

Machine load(const std::string& name) {
  auto machine = load_machine(name);
  EXPECT_TRUE(machine.has_value()) << machine.error().to_string();
  return machine.value_or(Machine{});
}

TEST(Presets, EveryNumberOfEveryShippedFileHasAnOrigin) {
  const auto names = list_configs("machines");
  EXPECT_GE(names.size(), 5U);
  for (const std::string& name : names) {
    const Machine machine = load(name);
    EXPECT_EQ(machine.name, name);
    for (const auto& [field, value] : fields_of(machine)) {
      if (field.ends_with(".kind")) {
        continue;  // a word
      }
      EXPECT_NE(origin_of(machine, field), "") << name << ": " << field << " = " << value;
    }
  }
}

TEST(Presets, EveryOriginSaysHowItIsKnown) {
  for (const std::string& name : list_configs("machines")) {
    for (const auto& [field, origin] : load(name).origins) {
      EXPECT_THAT(origin, ::testing::MatchesRegex(
                              "(published|recalled|derived|fitted|measured|inferred|assumed): ..*"))
          << name << ": " << field;
    }
  }
}

TEST(Presets, EveryOriginNamesAFieldThatExists) {
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

TEST(Presets, LinksTimesRateIsTheBandwidthOfOneDirection) {
  EXPECT_EQ(load("dgx-a100-80g").network[0].bandwidth, 25_GBps * 12);
  EXPECT_EQ(load("dgx-h100").network[0].bandwidth, 25_GBps * 18);
  EXPECT_EQ(load("dgx-h200").network[0].bandwidth, 25_GBps * 18);
  EXPECT_EQ(load("dgx-h800").network[0].bandwidth, 25_GBps * 8);
  EXPECT_EQ(load("dgx-b200").network[0].bandwidth, 50_GBps * 18);
  EXPECT_EQ(load("gb300-nvl72").network[0].bandwidth, 50_GBps * 18);
  EXPECT_EQ(load("mi300x").network[0].bandwidth, 64_GBps * 7);
  EXPECT_EQ(load("tpu-v4").network[0].bandwidth, 50_GBps * 6);
  EXPECT_EQ(load("tpu-v5p").network[0].bandwidth, 100_GBps * 6);
  for (const char* name : {"dgx-v100", "dgx-1-v100", "dgx-2-v100", "v100-9.71gbit"}) {
    EXPECT_EQ(load(name).network[0].bandwidth, 25_GBps * 6) << name;
  }
}

TEST(Presets, BothDirectionsTogetherAreTheVendorsFigure) {
  EXPECT_EQ(load("dgx-a100-80g").network[0].bandwidth * 2, 600_GBps);
  EXPECT_EQ(load("aws-p4d").network[0].bandwidth * 2, 600_GBps);
  for (const char* name : {"dgx-h100", "dgx-h200", "aws-p5", "aws-p5en"}) {
    EXPECT_EQ(load(name).network[0].bandwidth * 2, 900_GBps) << name;
  }
  for (const char* name : {"dgx-b200", "dgx-b300", "gb200-nvl72", "gb300-nvl72"}) {
    EXPECT_EQ(load(name).network[0].bandwidth * 2, 1800_GBps) << name;
  }
  EXPECT_EQ(load("dgx-2-v100").network[0].bandwidth * 2, 300_GBps);
  EXPECT_EQ(load("mi300x").network[0].bandwidth * 2, 896_GBps);
  EXPECT_EQ(load("tpu-v5p").network[0].bandwidth * 2, 1200_GBps);
  // A rack: 72 GPUs of 1.8 TB/s, quoted as 130 TB/s.
  EXPECT_NEAR((load("gb200-nvl72").network[0].bandwidth * 2 * 72).value(), 130e12, 0.5e12);
}

TEST(Presets, NodeAdaptersAreSharedByItsDevices) {
  EXPECT_EQ(load("dgx-a100-80g").network[1].bandwidth, Bandwidth(8 * 200e9 / 8 / 8));
  EXPECT_EQ(load("vtrain-a100").network[1].bandwidth, Bandwidth(4 * 200e9 / 8 / 8));
  EXPECT_EQ(load("frontier").network[2].bandwidth, Bandwidth(100e9 / 8));
  EXPECT_EQ(load("dgx-h100").network[1].bandwidth, Bandwidth(8 * 400e9 / 8 / 8));
  EXPECT_EQ(load("dgx-h200").network[1].bandwidth, Bandwidth(8 * 400e9 / 8 / 8));
  EXPECT_EQ(load("dgx-v100").network[1].bandwidth, Bandwidth(8 * 100e9 / 8 / 16));
  EXPECT_EQ(load("dgx-1-v100").network[1].bandwidth, Bandwidth(4 * 100e9 / 8 / 8));
  EXPECT_EQ(load("aws-p4d").network[1].bandwidth, Bandwidth(4 * 100e9 / 8 / 8));
  EXPECT_EQ(load("aws-p5").network[1].bandwidth, Bandwidth(32 * 100e9 / 8 / 8));
  EXPECT_EQ(load("aws-p5en").network[1].bandwidth, Bandwidth(16 * 200e9 / 8 / 8));
  EXPECT_NEAR(load("v100-9.71gbit").network[1].bandwidth.value(), 9.71e9 / 8 / 8, 1e5);
}

FlopRate peak(const Machine& machine, graph::DataType type) {
  return machine.device.peak[static_cast<std::size_t>(type)];
}

TEST(Presets, NarrowerTypesOfDensePeaksAreWholeMultiples) {
  // fp8 is twice bf16; fp4 four times (B200, GB200) or six times (B300, GB300: fp4 units added).
  for (const char* name : {"dgx-h100", "dgx-h200", "dgx-h800", "mi300x", "dgx-b200", "dgx-b300",
                           "gb200-nvl72", "gb300-nvl72"}) {
    const Machine machine = load(name);
    EXPECT_NEAR(peak(machine, graph::DataType::fp8) / peak(machine, graph::DataType::bf16), 2, 1e-3)
        << name;
  }
  for (const auto& [name, factor] : {std::pair{"dgx-b200", 4.0}, std::pair{"gb200-nvl72", 4.0},
                                     std::pair{"dgx-b300", 6.0}, std::pair{"gb300-nvl72", 6.0}}) {
    const Machine machine = load(name);
    EXPECT_NEAR(peak(machine, graph::DataType::fp4) / peak(machine, graph::DataType::bf16), factor,
                1e-3)
        << name;
  }
}

TEST(Presets, TilesAndPodsAddUpToTheirPublishedTotals) {
  // Dojo: 25 D1 of 362 TFLOP/s are a tile of 9.05 PFLOP/s; 354 nodes of 1.25 MB; 120 tiles.
  const Machine dojo = load("dojo-d1");
  EXPECT_NEAR(25 * peak(dojo, graph::DataType::bf16).value(), 9.05e15, 1e12);
  EXPECT_EQ(dojo.device.memory[0].capacity, Bytes(1'250'000) * 354);
  EXPECT_EQ(dojo.network[0].size * dojo.network[1].size, 25 * 120);
  EXPECT_EQ(dojo.network[1].bandwidth * 25, Bandwidth(36e12));
  // TPU v4: 16 x 16 x 16; half the cube is joined by 2 * 16 * 16 links of 50 GB/s, 24 TB/s.
  const Machine tpu = load("tpu-v4");
  EXPECT_EQ(tpu.network[0].size, 4096);
  EXPECT_NEAR(2 * 16 * 16 * tpu.network[0].bandwidth.value() / 6, 24e12, 0.1 * 24e12);
  EXPECT_EQ(load("tpu-v5p").network[0].size, 8960);
  EXPECT_EQ(load("tpu-v3").network[0].size, 1024);
}

TEST(Presets, MemoryTiersGetLargerSlowerAndAreOfferedByEveryServer) {
  for (const std::string& name : list_configs("machines")) {
    const Machine machine = load(name);
    const std::vector<compute::MemoryTier>& tiers = machine.device.memory;
    if (!machine.remote_memory.exists() && name != "localhost") {  // whose devices are the host
      ASSERT_GE(tiers.size(), 2U) << name;
      EXPECT_EQ(tiers[1].name, "host") << name;
    }
    for (std::size_t i = 1; i < tiers.size(); ++i) {
      EXPECT_LT(tiers[i].bandwidth, tiers[i - 1].bandwidth) << name;
      EXPECT_GE(tiers[i].latency, tiers[i - 1].latency) << name;
    }
  }
}

TEST(Presets, MemorySystemsOfCaseStudy3HaveTheTalksNumbers) {
  // ASTRA-sim 2.0, ISPASS 2023: GPU peak, HBM, remote memory groups and their rate, fabric.
  for (const auto& [name, group, fabric] :
       {std::tuple{"zero-infinity", 100e9, 256e9}, std::tuple{"hiermem-baseline", 100e9, 256e9},
        std::tuple{"hiermem-opt", 500e9, 512e9}}) {
    const Machine machine = load(name);
    EXPECT_EQ(peak(machine, graph::DataType::bf16), FlopRate(2048e12)) << name;
    EXPECT_EQ(machine.device.memory[0].bandwidth, Bandwidth(4096e9)) << name;
    EXPECT_EQ(machine.network[0].size * machine.network[1].size, 256) << name;
    EXPECT_EQ(machine.network[0].bandwidth, Bandwidth(fabric)) << name;
    EXPECT_EQ(machine.remote_memory.bandwidth, Bandwidth(group)) << name;
  }
  const memory::RemoteMemory pool = load("hiermem-opt").remote_memory;
  EXPECT_EQ(pool.groups, 256);
  EXPECT_EQ(pool.switches, 16);
  EXPECT_EQ(pool.fabric_bandwidth, Bandwidth(512e9));
  EXPECT_TRUE(pool.in_switch);
  EXPECT_EQ(load("zero-infinity").remote_memory.kind, memory::RemoteKind::per_device);
}

TEST(Presets, CommunicationSlowsKernelsByWhatItTakesAndAMessageByLess) {
  // A GEMM of many waves: 1 / (1 - share) when units are what it lacks. 2 % for waves and rounding.
  graph::Operator op;
  op.kind = graph::OperatorKind::gemm;
  op.gemm = {1, 65536, 16384, 16384};
  op.flops = graph::flops_of(op.gemm);
  for (const std::string& name : list_configs("machines")) {
    const compute::Device device = load(name).device;
    op.type = peak(load(name), graph::DataType::bf16) > FlopRate(0) ? graph::DataType::bf16
                                                                    : graph::DataType::fp16;
    const compute::KernelTime time = compute::kernel_time(op, device);
    EXPECT_LE(device.overlap_send_units, device.overlap_units) << name;
    EXPECT_GE(time.beside_collective, time.beside_message) << name;
    EXPECT_NEAR(time.beside_message / time.alone, 1 / (1 - device.overlap_send_units), 0.02)
        << name;
    if (device.overlap_units > 0) {
      EXPECT_NEAR(time.beside_collective / time.alone, 1 / (1 - device.overlap_units), 0.02)
          << name;
    }
  }
}

}  // namespace
}  // namespace orrery::machine
