// SPDX-License-Identifier: Apache-2.0
/// Nodes of traces read and write tensors, as allocations of a workload.
#include "workload/chakra/template_tensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/liveness.h"
#include "traces.h"
#include "workload/chakra/to_workload.h"

namespace orrery::chakra {
namespace {

using ::testing::HasSubstr;
using Lifetime = graph::Tensor::Lifetime;

ProtoNode uses(ProtoNode node, const std::string& field, const std::vector<std::string>& list) {
  auto* strings = attribute(node, field)->mutable_string_list();
  for (const std::string& text : list) {
    strings->add_values(text);
  }
  return node;
}

/// a (10) and w (5) -> b (20); b, w -> c (30), log (7); c -> w. Ids run against the dependencies.
std::vector<ProtoNode> three_kernels() {
  return {
      uses(uses(compute(3), "inputs", {"a", "10", "w", "5"}), "outputs", {"b", "20"}),
      uses(uses(compute(2, {3}), "inputs", {"b", "20", "w", "5"}), "outputs",
           {"c", "30", "log", "7"}),
      uses(uses(compute(1, {2}), "inputs", {"c", "30"}), "outputs", {"w", "5"}),
  };
}

/// Every rank has the trace.
Result<graph::Workload> workload_with(const std::vector<ProtoNode>& nodes, std::int64_t ranks,
                                      const TensorsOfRank& tensors) {
  const Folder folder;
  folder.write("t.all.et", et(nodes));
  const auto traces = load({.prefix = folder / "t", .ranks = ranks, .groups = {}, .progress = {}});
  EXPECT_TRUE(traces.has_value()) << traces.error().to_string();
  ToWorkloadOptions options;
  options.tensors = tensors;
  return to_workload(*traces, options);
}

TensorsOfRank tensors_in(const std::vector<ProtoNode>& nodes) {
  return [nodes](std::int64_t) { return read_tensors(et(nodes), "t.et"); };
}

TEST(TemplateTensors, LifetimesFollowTheOrderOfReadsAndWrites) {
  const auto workload = workload_with(three_kernels(), 2, tensors_in(three_kernels()));
  ASSERT_TRUE(workload.has_value()) << workload.error().to_string();
  ASSERT_EQ(workload->memory.size(), 1U);
  EXPECT_EQ(workload->memory[0].name, "tensors");
  const graph::Template& made = workload->programs.front().templates.front();
  ASSERT_EQ(made.tensors.size(), 4U);  // w is there all the time
  EXPECT_EQ(made.tensors[0].name, "a");
  EXPECT_EQ(made.tensors[0].lifetime, Lifetime::enters);
  EXPECT_EQ(made.tensors[1].name, "b");
  EXPECT_EQ(made.tensors[1].lifetime, Lifetime::instance);
  EXPECT_EQ(made.tensors[1].bytes, Bytes(20));
  EXPECT_EQ(made.tensors[2].lifetime, Lifetime::instance);
  EXPECT_EQ(made.tensors[3].name, "log");
  EXPECT_EQ(made.tensors[3].lifetime, Lifetime::leaves);
  EXPECT_EQ(graph::state_of(workload->role(0))[graph::MemoryIndex(std::size_t{0})],
            Bytes(15));  // a, w
  // Nodes are listed after those that they depend on: 3, 2, 1.
  EXPECT_EQ(made.nodes[0].writes, std::vector<graph::Use>{{.tensor = 1}});
  EXPECT_EQ(made.nodes[1].reads, std::vector<graph::Use>{{.tensor = 1}});
  EXPECT_EQ(made.nodes[2].reads, std::vector<graph::Use>{{.tensor = 2}});
  // 10 + 5 + 20; 5 + 20 + 30 + 7; 5 + 30 + 7. At the end w and log.
  const graph::MemoryPeak peak = graph::memory_peak(*workload, 0);
  EXPECT_EQ(peak.bytes.total(), Bytes(62));
  EXPECT_EQ(peak.end.total(), Bytes(12));
}

TEST(TemplateTensors, AnUpdateInPlaceEndsWithItsNode) {
  // As footprint.h has it: the node that writes w last also reads it.
  const std::vector<ProtoNode> nodes{
      uses(uses(compute(1), "inputs", {"w", "5"}), "outputs", {"w", "5"})};
  const auto workload = workload_with(nodes, 1, tensors_in(nodes));
  ASSERT_TRUE(workload.has_value());
  const graph::Template& made = workload->programs.front().templates.front();
  ASSERT_EQ(made.tensors.size(), 1U);
  EXPECT_EQ(made.tensors[0].lifetime, Lifetime::instance);
  EXPECT_TRUE(workload->role(0).state.empty());
}

TEST(TemplateTensors, TracesWithoutTensorsAllocateNothing) {
  const std::vector<ProtoNode> nodes{compute(1)};
  EXPECT_TRUE(workload_with(nodes, 2, {}).value().memory.empty());
  const graph::Workload asked = workload_with(nodes, 2, tensors_in(nodes)).value();
  EXPECT_TRUE(asked.memory.empty());
  EXPECT_TRUE(asked.role(0).state.empty());
}

TEST(TemplateTensors, OneFileOfEveryProgramIsAsked) {
  std::vector<std::int64_t> asked;
  const auto workload = workload_with(three_kernels(), 8, [&](std::int64_t rank) {
    asked.push_back(rank);
    return read_tensors(et(three_kernels()), "t.et");
  });
  ASSERT_TRUE(workload.has_value());
  EXPECT_EQ(asked, std::vector<std::int64_t>{0});
}

TEST(TemplateTensors, MistakesNameTheRank) {
  const auto foreign = workload_with({compute(1)}, 2, tensors_in(three_kernels()));
  ASSERT_FALSE(foreign.has_value());
  EXPECT_THAT(foreign.error().to_string(), HasSubstr("rank 0: tensor 'a' is used by node 3"));
  const std::vector<ProtoNode> huge{
      uses(compute(1), "inputs", {"a", "9223372036854775806", "b", "9223372036854775806"})};
  const auto refused = workload_with(huge, 1, tensors_in(huge));
  ASSERT_FALSE(refused.has_value());
  EXPECT_THAT(refused.error().to_string(), HasSubstr("rank 0: tensors of 2^63 bytes or more"));
}

}  // namespace
}  // namespace orrery::chakra
