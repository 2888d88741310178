// SPDX-License-Identifier: Apache-2.0
#include "machine/device_groups.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "machine/describe.h"

namespace orrery::machine {
namespace {

using ::testing::HasSubstr;

/// 4 devices of 200 TFLOP/s and 80 GB, 300 W, 12 of 100 TFLOP/s and 40 GB, 100 W; nodes of 4.
std::string two_parts(const std::string& more = "") {
  const auto device = [](const char* name, const char* rates) {
    return fmt::format("{{name: {}, units: 1, {}}}", name, rates);
  };
  return fmt::format(
      "name: m\n{}parts:\n  - {{name: fast, devices: 4, device: {}}}\n"
      "  - {{name: slow, devices: 12, device: {}}}\nnetwork:\n"
      "  - {{name: node, kind: switch, size: 4, bandwidth: 1 GB/s, latency: 1 us}}\n"
      "  - {{name: rack, kind: switch, size: 0, bandwidth: 1 GB/s, latency: 1 us}}\n",
      more,
      device("f",
             "peak: {bf16: 200 TFLOP/s, fp8: 400 TFLOP/s}, power: 300 W, memory: "
             "[{name: h, capacity: 80 GB, bandwidth: 3 GB/s}]"),
      device("s",
             "peak: {bf16: 100 TFLOP/s}, power: 100 W, memory: "
             "[{name: h, capacity: 40 GB, bandwidth: 1 GB/s}]"));
}

Result<Machine> parsed(const std::string& text) {
  return parse_machine(parse_config(text, "m.yaml", ConfigSyntax::yaml).value());
}

TEST(Parts, AMachineOfSeveralSortsIsReadAndWritten) {
  const auto machine = parsed(two_parts());
  ASSERT_TRUE(machine) << machine.error().to_string();
  ASSERT_EQ(machine->parts.size(), 2U);
  EXPECT_EQ(machine->parts[1].devices, 12);
  const auto again = parsed(to_yaml(*machine));
  ASSERT_TRUE(again) << again.error().to_string();
  EXPECT_EQ(*again, *machine);
  EXPECT_THAT(describe(*machine), HasSubstr("parts.slow.device.peak.bf16"));
}

TEST(Parts, ADeviceMayBeAShippedMachines) {
  const std::string text =
      "name: m\nparts:\n  - {name: h, devices: 8, device: dgx-h100}\n"
      "network:\n  - {name: infiniband, kind: switch, size: 0, bandwidth: 1 GB/s, latency: 1 us}\n";
  const auto machine = parsed(text);
  ASSERT_TRUE(machine) << machine.error().to_string();
  EXPECT_EQ(machine->parts[0].device, load_machine("dgx-h100")->device);
}

TEST(Parts, TheMeanDeviceCountsDevices) {
  const Machine machine = parsed(two_parts()).value();
  constexpr auto kBf16 = static_cast<std::size_t>(graph::DataType::bf16);
  constexpr auto kFp8 = static_cast<std::size_t>(graph::DataType::fp8);
  // (4 x 200 + 12 x 100) / 16 = 125 TFLOP/s; (4 x 300 + 12 x 100) / 16 = 150 W.
  EXPECT_DOUBLE_EQ(machine.device.peak[kBf16].value(), 125e12);
  EXPECT_DOUBLE_EQ(machine.device.peak[kFp8].value(), 0);  // half of them do not compute in it
  EXPECT_DOUBLE_EQ(machine.device.power.value(), 150);
  EXPECT_EQ(machine.device.memory[0].capacity, Bytes(40'000'000'000));
}

TEST(Parts, RanksLieInPartsInTheirOrder) {
  const Machine machine = parsed(two_parts()).value();
  EXPECT_EQ(device_group_of(machine, 3), 0U);
  EXPECT_EQ(device_group_of(machine, 4), 1U);
  const Machine turned = arranged(machine, "slow,fast").value();
  EXPECT_EQ(device_group_of(turned, 11), 0U);
  EXPECT_EQ(device_group_of(turned, 12), 1U);
  EXPECT_EQ(turned.parts[1].name, "fast");
  EXPECT_EQ(arranged(turned, "slow,fast").value(), turned);
}

TEST(Parts, FewerDevicesAreTheFirstOnes) {
  const Machine machine = parsed(two_parts()).value();
  const Machine eight = with_devices(machine, 8).value();
  ASSERT_EQ(eight.parts.size(), 2U);
  EXPECT_EQ(eight.parts[1].devices, 4);
  const Machine four = with_devices(machine, 4).value();
  EXPECT_TRUE(four.parts.empty());
  EXPECT_EQ(four.device.name, "f");
  EXPECT_THAT(with_devices(machine, 32).error().to_string(), HasSubstr("at most the 16 devices"));
}

TEST(Parts, PartsOfEqualDevicesAreNone) {
  Machine machine = parsed(two_parts()).value();
  machine.parts[1].device = machine.parts[0].device;
  const Machine alike = with_devices(machine, 16).value();
  EXPECT_TRUE(alike.parts.empty());
  EXPECT_EQ(alike.device, machine.parts[0].device);
}

TEST(Parts, MistakesNameTheField) {
  const Machine machine = parsed(two_parts()).value();
  EXPECT_THAT(arranged(machine, "fast,none").error().to_string(), HasSubstr("fast,slow"));
  EXPECT_THAT(arranged(machine, "fast,fast").error().to_string(), HasSubstr("each once"));
  EXPECT_THAT(arranged(load_machine("dgx-h100").value(), "a").error().to_string(),
              HasSubstr("parts"));
  EXPECT_THAT(check_alike(machine, "serving").error().to_string(), HasSubstr("serving"));
  EXPECT_THAT(parsed(two_parts("device: {name: d, units: 1, peak: {bf16: 1 TFLOP/s}, memory: "
                               "[{name: h, capacity: 1 GB, bandwidth: 1 GB/s}]}\n"))
                  .error()
                  .to_string(),
              HasSubstr("nothing beside parts"));
  EXPECT_FALSE(parsed("name: m\nparts: []\nnetwork: []\n"));
}

TEST(PowerCap, HoldsEveryDeviceAndLowersItsClock) {
  const Machine machine = load_machine("dgx-h200").value();
  const Machine held = with_power_cap(machine, Power(500)).value();
  EXPECT_EQ(held.device.power_cap, Power(500));
  EXPECT_LT(held.device.clock, machine.device.clock);
  EXPECT_EQ(with_power_cap(machine, machine.device.power)->device.clock, machine.device.clock);
  const Machine read = parsed(to_yaml(held)).value();
  EXPECT_EQ(read.device, held.device);
}

TEST(PowerCap, MistakesSayWhatWouldBeRight) {
  const Machine machine = load_machine("dgx-h200").value();
  EXPECT_THAT(with_power_cap(machine, Power(701)).error().to_string(),
              HasSubstr("power_cap: found '701 W', expected at most the 700 W of H200"));
  EXPECT_THAT(with_power_cap(machine, Power(122)).error().to_string(),
              HasSubstr("expected above the 121.1 W that H200"));
  EXPECT_THAT(with_power_cap(load_machine("sn40l").value(), Power(100)).error().to_string(),
              HasSubstr("no cap: SN40L states no power"));
}

TEST(PowerCap, OfADeviceWithoutPowerModelIsAnInferredModels) {
  // 220 W of an H200's 700: products draw 1,003 x 220 / 700 W at full clock.
  const Machine held = with_power_cap(load_machine("tpu-v3").value(), Power(200)).value();
  EXPECT_NEAR(held.device.power_model.gemm_power.value(), 315.2, 0.1);
  EXPECT_LT(held.device.clock, 1);
  EXPECT_THAT(held.origins.at("device.power_model"), HasSubstr("inferred"));
}

/// A machine of two devices with these further fields.
std::string device_with(const std::string& fields) {
  return "name: m\ndevice: {name: d, units: 1, peak: {bf16: 1 TFLOP/s}, memory: [{name: h, "
         "capacity: 1 GB, bandwidth: 1 GB/s}], " +
         fields +
         "}\nnetwork: [{name: n, kind: switch, size: 2, bandwidth: 1 GB/s, latency: 1 us}]\n";
}

/// The share of their rate that kernels keep on it; -1: it is refused.
double clock_with(const std::string& fields) {
  const auto machine = parsed(device_with(fields));
  EXPECT_TRUE(machine) << machine.error().to_string();
  return machine ? machine->device.clock : -1;
}

TEST(PowerModel, MistakesNameTheField) {
  const std::string model = "power_model: {gemm_power: 100 W}";
  EXPECT_GT(clock_with("power: 100 W, idle_power: 20 W, " + model), 0);
  EXPECT_THAT(parsed(device_with(model)).error().to_string(), HasSubstr("device.power: "));
  EXPECT_THAT(parsed(device_with("power: 100 W, idle_power: 99 W, " + model)).error().to_string(),
              HasSubstr("no clock is low enough"));
  EXPECT_THAT(parsed(device_with("power: 100 W, power_cap: 200 W")).error().to_string(),
              HasSubstr("device.power_cap: found '200 W', expected at most the device's power"));
  EXPECT_THAT(
      parsed(device_with("power: 100 W, power_model: {busy_power: 1 W}")).error().to_string(),
      HasSubstr("gemm_power"));
  EXPECT_THAT(parsed(device_with("power: 100 W, power_model: {gemm_power: 1 W, regulated: 2}"))
                  .error()
                  .to_string(),
              HasSubstr("device.power_model.regulated: "));
  EXPECT_THAT(
      parsed(device_with("power: 100 W, power_model: {gemm_power: 1 W, attention_table_clock: 2}"))
          .error()
          .to_string(),
      HasSubstr(
          "device.power_model.attention_table_clock: found '2', expected a share of at most"));
  EXPECT_THAT(parsed(device_with("power: 100 W, power_model: {gemm_power: 1 W, "
                                 "attention_table_clock: -1}"))
                  .error()
                  .to_string(),
              HasSubstr("device.power_model.attention_table_clock: found '-1'"));
  EXPECT_EQ(clock_with("sustained_clock: 0.9"), 0.9);
  EXPECT_EQ(clock_with("power: 1 kW, sustained_clock: 0.9, " + model), 0.9);
  EXPECT_FALSE(parsed(device_with("sustained_clock: 1.1")));
}

}  // namespace
}  // namespace orrery::machine
