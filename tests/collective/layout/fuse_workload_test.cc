// SPDX-License-Identifier: Apache-2.0
#include "collective/layout/fuse_workload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../../graph/pipelines.h"

namespace orrery::layout {
namespace {

using graph::Node;
using ::testing::HasSubstr;
using testing::kEnds;
using testing::kForward;

constexpr graph::GroupIndex kTensor = kEnds;  // the row's new members

graph::Tensor value(Bytes bytes) {
  graph::Tensor tensor;
  tensor.bytes = bytes;
  return tensor;
}

Node with(Node node, std::vector<int> reads, std::vector<int> writes) {
  for (const int tensor : reads) {
    node.reads.push_back({tensor, 0});
  }
  for (const int tensor : writes) {
    node.writes.push_back({tensor, 0});
  }
  return node;
}

/// Two stages of two tensor-parallel ranks: product, sum of 64 bytes, residual, message; the next
/// stage's product reads it.
graph::Workload two_stages(Bytes message = 64_B) {
  std::vector<Node> first{with(testing::compute_node(1), {}, {0}),
                          with(testing::reduce(kTensor), {0}, {1}),
                          with(testing::compute_node(8, {1}), {1}, {2}),
                          with(testing::send(kForward, 2, message), {2}, {})};
  first[0].operators[0].kind = graph::OperatorKind::gemm;
  first[1].after = {0};
  first[3].after = {2};
  std::vector<Node> second{with(testing::receive(kForward, -2, message), {}, {0}),
                           with(testing::compute_node(1, {0}), {0}, {1})};
  graph::Workload workload = testing::pipeline({first, second});
  workload.ranks = 4;
  workload.role_map.digits = {{2, 2}};
  workload.groups[1].members = testing::by_digits({{2, 2}});
  workload.groups[2].members = testing::by_digits({{2, 1}});
  workload.programs[0].templates[0].tensors = {value(64_B), value(64_B), value(64_B)};
  workload.programs[1].templates[0].tensors = {value(message), value(64_B)};
  EXPECT_EQ(testing::mistakes_of(workload), "");
  return workload;
}

std::string reason_of(graph::Workload workload) {
  const Fused fused = fuse_communication(std::move(workload), nullptr);
  EXPECT_EQ(testing::mistakes_of(fused.workload), "");
  return fused.fusions.empty() ? "nothing" : fused.fusions.front().reason;
}

TEST(FuseWorkload, ASumThatLeavesAStageGoesInSlices) {
  const Fused fused = fuse_communication(two_stages(), nullptr);
  EXPECT_EQ(testing::mistakes_of(fused.workload), "");
  ASSERT_EQ(fused.fusions.size(), 1U);
  EXPECT_EQ(fused.fusions[0].reason, "");
  // 64 bytes, two ranks: 2 x 32 + 64 before; 32 + 32 + 32 after.
  EXPECT_EQ(fused.fusions[0].before, 128_B);
  EXPECT_EQ(fused.fusions[0].after, 96_B);
  const std::vector<Node>& first = fused.workload.programs[0].templates[0].nodes;
  EXPECT_EQ(first[1].collective, graph::CollectiveKind::reduce_scatter);
  EXPECT_EQ(first[1].bytes, 64_B);
  EXPECT_EQ(first[2].operators[0].bytes, 4_B);  // half of the residual's work
  EXPECT_EQ(first[2].operators[0].flops, Flops(4));
  EXPECT_EQ(first[3].bytes, 32_B);
  const std::vector<Node>& second = fused.workload.programs[1].templates[0].nodes;
  ASSERT_EQ(second.size(), 3U);
  EXPECT_EQ(second[0].bytes, 32_B);
  EXPECT_EQ(second[1].collective, graph::CollectiveKind::all_gather);
  EXPECT_EQ(second[1].bytes, 64_B);
  EXPECT_EQ(second[2].after, std::vector<int>{1});  // what waited for the message
}

TEST(FuseWorkload, AMessageThatIsASliceAlreadyKeepsItsGather) {
  graph::Workload workload = two_stages(32_B);
  const Fused fused = fuse_communication(std::move(workload), nullptr);
  EXPECT_EQ(testing::mistakes_of(fused.workload), "");
  EXPECT_EQ(fused.fusions[0].reason, "");
  EXPECT_EQ(fused.workload.programs[0].templates[0].nodes[3].bytes, 32_B);
  EXPECT_EQ(fused.workload.programs[1].templates[0].nodes.size(), 2U);
}

TEST(FuseWorkload, WhatIsIllegalIsRefusedWithItsReason) {
  // A product reads the sum: what is sent is another tensor.
  graph::Workload product = two_stages();
  product.programs[0].templates[0].nodes[2].operators[0].kind = graph::OperatorKind::gemm;
  EXPECT_EQ(reason_of(product), "nothing");
  // A norm's gradient adds over tokens; its forward does not.
  graph::Workload norm = two_stages();
  graph::Operator& op = norm.programs[0].templates[0].nodes[2].operators[0];
  op.kind = graph::OperatorKind::norm;
  EXPECT_EQ(reason_of(norm), "");
  op.name = "norm_backward";
  EXPECT_THAT(reason_of(norm), HasSubstr("gradients of parameters"));
  // Condition 1: another reader beside the message.
  graph::Workload reader = two_stages();
  Node other = with(testing::compute_node(1, {1}), {1}, {});
  other.operators[0].kind = graph::OperatorKind::attention;
  reader.programs[0].templates[0].nodes.push_back(other);
  EXPECT_THAT(reason_of(reader), HasSubstr("needs the whole sum"));
  // The message is not the sum.
  EXPECT_THAT(reason_of(two_stages(48_B)), HasSubstr("48 bytes"));
  // Condition 4: the rank is alone.
  graph::Workload alone = two_stages();
  alone.groups[2].members = testing::by_digits({});
  EXPECT_THAT(reason_of(alone), HasSubstr("alone"));
}

/// Returns the workload as a trace says it: nodes that wait for one another, no values, no kinds of
/// work.
graph::Workload as_a_trace(graph::Workload workload) {
  for (graph::Program& program : workload.programs) {
    graph::Template& t = program.templates[0];
    t.tensors.clear();
    for (Node& node : t.nodes) {
      node.reads.clear();
      node.writes.clear();
      for (graph::Operator& op : node.operators) {
        op.kind = graph::OperatorKind::opaque;
      }
    }
  }
  return workload;
}

TEST(FuseWorkload, OfATraceWhatWaitsForASumReadsIt) {
  // Between sum and message stands work of which nothing is known.
  EXPECT_THAT(reason_of(as_a_trace(two_stages())),
              HasSubstr("nothing says that it works by token"));
  // The message waits for the sum itself, and nobody else does: 64 bytes among 2 ranks.
  graph::Workload direct = as_a_trace(two_stages());
  graph::Template& first = direct.programs[0].templates[0];
  first.nodes[3].after = {1};
  first.nodes.erase(first.nodes.begin() + 2);
  const Fused fused = fuse_communication(direct, nullptr);
  ASSERT_EQ(fused.fusions.size(), 1U);
  EXPECT_EQ(fused.fusions[0].reason, "");
  EXPECT_EQ(testing::mistakes_of(fused.workload), "");
  EXPECT_EQ(fused.workload.programs[0].templates[0].nodes[1].collective,
            graph::CollectiveKind::reduce_scatter);
  EXPECT_EQ(fused.workload.programs[0].templates[0].nodes[2].bytes, 32_B);
  const std::vector<Node>& second = fused.workload.programs[1].templates[0].nodes;
  EXPECT_EQ(second[1].collective, graph::CollectiveKind::all_gather);
  EXPECT_EQ(second[2].after, std::vector<int>{1});
}

TEST(FuseWorkload, SizesDivide) {
  // Condition 4: 63 bytes are no equal slices of two ranks.
  graph::Workload odd = two_stages(63_B);
  for (graph::Tensor& tensor : odd.programs[0].templates[0].tensors) {
    tensor.bytes = 63_B;
  }
  odd.programs[0].templates[0].nodes[1].bytes = 63_B;
  EXPECT_THAT(reason_of(odd), HasSubstr("63 bytes do not divide among 2 ranks"));
}

TEST(FuseWorkload, AChannelIsFusedWholeOrNotAtAll) {
  // A second message of the channel, in a template of its own, carries no sum.
  graph::Workload workload = two_stages();
  workload.programs[0].templates.push_back({"plain", {testing::send(kForward, 2)}});
  workload.programs[1].templates.push_back({"plain", {testing::receive(kForward, -2)}});
  workload.source = testing::in_order(2, 2);
  EXPECT_EQ(testing::mistakes_of(workload), "");
  EXPECT_THAT(reason_of(workload), HasSubstr("other messages of its channel"));
}

TEST(FuseWorkload, AWorkloadWithoutSumsIsAsItWas) {
  graph::Workload workload = two_stages();
  workload.programs[0].templates[0].nodes[1].collective = graph::CollectiveKind::reduce_scatter;
  const graph::Template before = workload.programs[0].templates[0];
  const Fused fused = fuse_communication(std::move(workload), nullptr);
  EXPECT_TRUE(fused.fusions.empty());
  EXPECT_EQ(fused.workload.programs[0].templates[0], before);
}

}  // namespace
}  // namespace orrery::layout
