// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "machine/describe.h"
#include "machine/machine.h"

namespace orrery::machine {
namespace {

using ::testing::HasSubstr;

Result<Machine> parsed_text(const std::string& text) {
  return parse_machine(parse_config(text, "m.yaml", ConfigSyntax::yaml).value());
}
Machine read_text(const std::string& text) {
  auto machine = parsed_text(text);
  EXPECT_TRUE(machine.has_value()) << machine.error().to_string();
  return machine.value_or(Machine{});
}
std::string refusal_of_text(const std::string& text) {
  const auto machine = parsed_text(text);
  return machine.has_value() ? "" : machine.error().to_string();
}

TEST(Tracker, IsReadAndWrittenAndItsMistakesAreNamed) {
  const auto with_tracker = [](const std::string& tracker) {
    return "name: m\ndevice: {name: d, units: 1, peak: {bf16: 1 TFLOP/s}, memory: [{name: h, "
           "capacity: 1 GB, bandwidth: 1 GB/s}]" +
           tracker +
           "}\nnetwork: [{name: a, kind: switch, size: 8, bandwidth: 1 GB/s, latency: 1 us}]\n";
  };
  EXPECT_FALSE(read_text(with_tracker("")).device.tracker.has_value());
  const Machine empty = read_text(with_tracker(", tracker: {}"));
  EXPECT_EQ(empty.device.tracker, compute::Tracker());
  const Machine stated = read_text(with_tracker(", tracker: {contention: 0.35, rereads: 3}"));
  EXPECT_EQ(stated.device.tracker->contention, 0.35);
  EXPECT_EQ(read_text(to_yaml(stated)), stated);
  EXPECT_THAT(describe(stated), HasSubstr("device.tracker.rereads"));
  EXPECT_THAT(
      refusal_of_text(with_tracker(", tracker: {contention: -1, rereads: 0.5, entries: 256}")),
      ::testing::AllOf(HasSubstr("contention"), HasSubstr("a factor from 0 to 10"),
                       HasSubstr("rereads"), HasSubstr("a factor of 1 or more"),
                       HasSubstr("entries")));
}

}  // namespace
}  // namespace orrery::machine
