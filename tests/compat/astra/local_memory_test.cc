// SPDX-License-Identifier: Apache-2.0
#include "compat/astra/local_memory.h"

#include <gtest/gtest.h>

#include "../../workload/chakra/traces.h"
#include "compat/astra/load.h"

namespace orrery::astra {
namespace {

using chakra::attribute;
using chakra::Folder;
using chakra::ProtoNode;

ProtoNode kernel(std::uint64_t id, std::uint64_t micros,
                 std::initializer_list<std::uint64_t> after) {
  ProtoNode node = chakra::proto_node(id, ChakraProtoMsg::COMP_NODE, after);
  node.set_duration_micros(micros);
  attribute(node, "is_cpu_op")->set_bool_val(false);
  attribute(node, "num_ops")->set_int64_val(1);
  attribute(node, "tensor_size")->set_uint64_val(1);
  return node;
}

void uses(ProtoNode& node, const std::string& field, const std::vector<std::string>& list) {
  auto* strings = attribute(node, field)->mutable_string_list();
  for (const std::string& text : list) {
    strings->add_values(text);
  }
}

/// 2 us, then 3 us, then 1 us: a (100 bytes) -> b (50) -> c (10) -> nothing.
std::string three_kernels() {
  std::vector<ProtoNode> nodes{kernel(1, 2, {}), kernel(2, 3, {1}), kernel(3, 1, {2})};
  uses(nodes[0], "inputs", {"a", "100"});
  uses(nodes[0], "outputs", {"b", "50"});
  uses(nodes[1], "inputs", {"b", "50"});
  uses(nodes[1], "outputs", {"c", "10"});
  uses(nodes[2], "inputs", {"c", "10"});
  return chakra::et(nodes);
}

struct Tracked {
  RunResult result;
  std::vector<LocalMemory> memory;
};

Tracked track(const Folder& folder, const std::string& trace) {
  folder.write("trace.all.et", trace);
  const Files files{
      .workload = folder / "trace",
      .system = folder.write("system.json", R"({"scheduling-policy": "LIFO", "local-mem-bw": 50,
        "active-chunks-per-dimension": 1, "preferred-dataset-splits": 1, "endpoint-delay": 10,
        "replay-only": 1, "track-local-mem": 1, "all-reduce-implementation": ["ring"],
        "all-gather-implementation": ["ring"], "reduce-scatter-implementation": ["ring"],
        "all-to-all-implementation": ["ring"], "collective-optimization": "localBWAware"})"),
      .network = folder.write("network.yml",
                              "topology: [Ring]\nnpus_count: [4]\nbandwidth: [50]\nlatency: [0]\n"),
      .memory = folder.write("memory.json", R"({"memory-type": "NO_MEMORY_EXPANSION"})"),
      .groups = std::nullopt};
  const auto loaded = load_files(files, Quirks::all());
  if (!loaded) {
    ADD_FAILURE() << loaded.error().to_string();
    return {};
  }
  EXPECT_TRUE(loaded->input.system.track_local_memory);
  RunOptions options;
  options.node_times = true;
  const auto result = run(loaded->input, options);
  if (!result) {
    ADD_FAILURE() << result.error().to_string();
    return {};
  }
  const auto memory = local_memory(files.workload, loaded->input, *result);
  EXPECT_TRUE(memory) << memory.error().to_string();
  return {*result, memory.value_or(std::vector<LocalMemory>{})};
}

TEST(AstraLocalMemory, TensorsLiveWhileTheRunNeedsThem) {
  // a to 2 us, b to 5 us, c from 2 to 6 us.
  const Folder folder;
  const Tracked tracked = track(folder, three_kernels());
  ASSERT_EQ(tracked.memory.size(), tracked.result.classes.size());
  ASSERT_FALSE(tracked.memory.empty());
  const chakra::Footprint& footprint = tracked.memory.front().footprint;
  EXPECT_EQ(footprint.peak, Bytes(150));
  EXPECT_EQ(footprint.peak_at, 0_us);
  EXPECT_EQ(footprint.lifetimes[0].until, 2_us);
  EXPECT_EQ(footprint.lifetimes[1].until, 5_us);
  EXPECT_EQ(footprint.lifetimes[2].from, 2_us);
  EXPECT_EQ(footprint.lifetimes[2].until, 6_us);
}

TEST(AstraLocalMemory, TracesThatNameNoTensorsHaveNone) {
  const Folder folder;
  EXPECT_TRUE(track(folder, chakra::et({kernel(1, 2, {})})).memory.empty());
}

TEST(AstraLocalMemory, NodeTimesAreNotKeptUnlessAskedFor) {
  const Folder folder;
  const Tracked tracked = track(folder, three_kernels());
  EXPECT_EQ(tracked.result.node_times.front().size(), 3U);
  EXPECT_EQ(tracked.result.node_times.front()[1].start, 2_us);
  EXPECT_EQ(tracked.result.node_times.front()[1].end, 5_us);
}

}  // namespace
}  // namespace orrery::astra
