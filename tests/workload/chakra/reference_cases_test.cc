// SPDX-License-Identifier: Apache-2.0
/// Every reference case of ASTRA-sim has its workload twice: as .et files and in readable form.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "base/config_node.h"
#include "base/reader.h"
#include "machine/machine.h"
#include "simulate/simulate.h"
#include "traces.h"
#include "workload/chakra/to_workload.h"

namespace orrery::chakra {
namespace {

namespace fs = std::filesystem;

const std::string kCases = std::string(ORRERY_SOURCE_DIR) + "/tests/compat/astra/cases/";

std::int64_t number(const ConfigNode& node, std::string_view field, std::int64_t fallback) {
  const ConfigNode* value = node.find(field);
  return value == nullptr ? fallback : parse_integer(value->text).value();
}

void expect_collective(const TraceSet& set, std::int64_t rank, const ConfigNode& want,
                       const Node& node) {
  const std::map<std::string, CollectiveType> types{
      {"all_reduce", CollectiveType::all_reduce},
      {"all_gather", CollectiveType::all_gather},
      {"all_to_all", CollectiveType::all_to_all},
      {"reduce_scatter", CollectiveType::reduce_scatter}};
  EXPECT_EQ(node.type, NodeType::comm_coll);
  EXPECT_EQ(node.collective, types.at(want.find("kind")->text));
  EXPECT_EQ(node.size.value(), number(want, "size", -1));
  const std::int64_t group = number(want, "group", 0);
  EXPECT_EQ(set.groups[set.group(rank, node.group)].name, group == 0 ? "" : std::to_string(group));
  const ConfigNode* involved = want.find("involved_dim");
  EXPECT_EQ(node.has_involved, involved != nullptr);
  for (std::size_t d = 0; involved != nullptr && d < involved->items.size(); ++d) {
    EXPECT_EQ((node.involved >> d & 1U) != 0, involved->items[d].text == "true");
  }
}

void expect_node(const TraceSet& set, std::int64_t rank, const ConfigNode& want, const Node& node) {
  const std::string kind = want.find("kind")->text;
  EXPECT_EQ(static_cast<std::int64_t>(node.id), number(want, "id", -1));
  EXPECT_EQ(node.duration, Time(number(want, "micros", 0) * 1'000'000));
  EXPECT_EQ(node.on_cpu, want.find("cpu") != nullptr);
  if (kind == "comp") {
    EXPECT_EQ(node.type, NodeType::comp);
    EXPECT_EQ(node.has_operations, want.find("ops") != nullptr);
    EXPECT_EQ(node.operations.value(), static_cast<double>(number(want, "ops", 0)));
    EXPECT_EQ(node.size.value(), number(want, "bytes", 0));
  } else if (kind == "send" || kind == "recv") {
    EXPECT_EQ(node.type, kind == "send" ? NodeType::comm_send : NodeType::comm_recv);
    EXPECT_EQ(node.peer + rank, number(want, kind == "send" ? "dst" : "src", -1));
    EXPECT_EQ(node.tag, number(want, "tag", 0));
    EXPECT_EQ(node.size.value(), number(want, "size", -1));
  } else if (kind == "load" || kind == "store") {
    EXPECT_EQ(node.type, kind == "load" ? NodeType::mem_load : NodeType::mem_store);
    EXPECT_EQ(node.size.value(), number(want, "bytes", number(want, "size", -1)));
  } else {
    expect_collective(set, rank, want, node);
  }
}

void expect_program(const TraceSet& set, std::int64_t rank, const ConfigNode& want) {
  const Program& program = set.program(rank);
  ASSERT_EQ(program.nodes.size(), want.items.size());
  for (std::size_t i = 0; i < want.items.size(); ++i) {
    const Node& node = program.nodes[i];
    expect_node(set, rank, want.items[i], node);
    const ConfigNode* dependencies = want.items[i].find("deps");
    ASSERT_EQ(node.dependencies, dependencies == nullptr ? 0 : dependencies->items.size());
    for (std::uint32_t d = 0; d < node.dependencies; ++d) {
      const Node& before = program.nodes[program.dependencies[node.first_dependency + d]];
      EXPECT_EQ(std::to_string(before.id), dependencies->items[d].text);
    }
  }
}

class ReferenceCase : public testing::TestWithParam<std::string> {};

LoadOptions options_of(const std::string& folder, const ConfigNode& want) {
  LoadOptions options{.prefix = folder + "trace", .ranks = 4, .groups = {}, .progress = {}};
  if (want.find("all_ranks") == nullptr) {
    options.ranks = static_cast<std::int64_t>(want.fields.size());
  }
  if (fs::exists(folder + "groups.json")) {
    options.groups = folder + "groups.json";
  }
  return options;
}

TEST_P(ReferenceCase, reads_as_its_readable_form_says) {
  const std::string folder = kCases + GetParam() + "/";
  const auto want = load_config(folder + "workload.json");
  ASSERT_TRUE(want.has_value());
  const ConfigNode* all = want->find("all_ranks");
  const LoadOptions options = options_of(folder, *want);
  const auto set = load(options);
  ASSERT_TRUE(set.has_value()) << set.error().to_string();
  ASSERT_EQ(set->ranks(), options.ranks);
  for (std::int64_t rank = 0; rank < options.ranks; ++rank) {
    expect_program(*set, rank, all != nullptr ? *all : *want->find(std::to_string(rank)));
  }
}

/// The traces run on any machine: here an H100's, cut to the ranks.
TEST_P(ReferenceCase, runs_on_a_machine_that_it_was_not_made_for) {
  const std::string folder = kCases + GetParam() + "/";
  const auto want = load_config(folder + "workload.json");
  ASSERT_TRUE(want.has_value());
  const auto set = load(options_of(folder, *want));
  ASSERT_TRUE(set.has_value());
  const auto machine =
      machine::with_devices(machine::load_machine("dgx-h100").value(), set->ranks());
  ASSERT_TRUE(machine.has_value() || set->ranks() > 8);  // nodes of 8 have no 12
  if (!machine) {
    return;
  }
  ToWorkloadOptions options;
  options.dimensions = {set->ranks()};
  options.memory_tier = 1;
  const auto workload = to_workload(*set, options);
  ASSERT_TRUE(workload.has_value()) << workload.error().to_string();
  const auto timeline = simulate::simulate(*workload, *machine, {});
  ASSERT_TRUE(timeline.has_value()) << timeline.error().to_string();
  EXPECT_GE(timeline->step_time, Time(0));
}

std::vector<std::string> cases() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(kCases)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

INSTANTIATE_TEST_SUITE_P(all, ReferenceCase, testing::ValuesIn(cases()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace orrery::chakra
