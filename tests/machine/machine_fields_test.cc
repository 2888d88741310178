// SPDX-License-Identifier: Apache-2.0
// docs/models/machine_fields.md has every field that a machine file may state.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/file.h"
#include "machine/machine.h"

namespace orrery::machine {
namespace {

using ::testing::HasSubstr;

/// docs/models/machine_fields.md from one heading to the next.
std::string page_section(const std::string& heading) {
  const std::string page =
      read_file(std::string(ORRERY_SOURCE_DIR) + "/docs/models/machine_fields.md").value();
  const std::size_t begin = page.find("\n## " + heading + "\n");
  return begin == std::string::npos ? ""
                                    : page.substr(begin, page.find("\n## ", begin + 1) - begin);
}

template <class T>
void expect_all_fields(const std::string& heading) {
  const std::string section = page_section(heading);
  T::fields([&](std::string_view name, auto, std::string_view meaning) {
    EXPECT_THAT(section, ::testing::ContainsRegex("\n. `" + std::string(name) + "`[^\n]* [|] "));
    EXPECT_THAT(section, HasSubstr("| " + std::string(meaning) + " |"));
  });
}

TEST(MachineFields, EveryFieldIsOnThePageWithItsMeaning) {
  expect_all_fields<compute::Device>("`device`");
  expect_all_fields<compute::PowerModel>("`device.power_model`");
  expect_all_fields<compute::MemoryTier>("`device.memory`");
  expect_all_fields<compute::SystolicArray>("`device.systolic`");
  expect_all_fields<compute::Tracker>("`device.tracker`");
  expect_all_fields<compute::KernelCoefficients>("`device.kernels`");
  expect_all_fields<topology::NetworkDimension>("`network`");
  expect_all_fields<topology::PeerShare>("`network.bandwidth_by_peers`");
  expect_all_fields<topology::Protocol>(
      "`network.protocols`, `network.in_switch`, `network.exchange`");
  expect_all_fields<memory::RemoteMemory>("`remote_memory`");
}

/// Expects the keys of a file of that shape, apart from the names of formats and origins.
void expect_keys(const ConfigNode& node, const std::string& page) {
  for (const ConfigField& field : node.fields) {
    EXPECT_THAT(page, HasSubstr("\n| `" + field.name + "`"));
    if (field.name != "origins" && field.name != "peak" && field.name != "kernels") {
      expect_keys(field.value, page);
    }
  }
  for (const ConfigNode& item : node.items) {
    expect_keys(item, page);
  }
}

TEST(MachineFields, WhatTheShippedMachinesStateIsOnThePage) {
  const std::string page =
      read_file(std::string(ORRERY_SOURCE_DIR) + "/docs/models/machine_fields.md").value();
  for (const std::string& name : list_configs("machines")) {
    SCOPED_TRACE(name);
    expect_keys(load_config(find_config("machines", name).value()).value(), page);
  }
}

}  // namespace
}  // namespace orrery::machine
