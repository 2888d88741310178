// SPDX-License-Identifier: Apache-2.0
// Values between the nodes of a lowered step: bytes on one rank, and how ranks hold them together.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "cases.h"

namespace orrery::parallel {
namespace {

using cases::find_node;
using cases::lowered;

const graph::Template& with_node(const graph::Workload& workload, const graph::Node* node) {
  for (const graph::Template& t : workload.program_of(0).templates) {
    if (node >= t.nodes.data() && node < t.nodes.data() + t.nodes.size()) {
      return t;
    }
  }
  return workload.program_of(0).templates.front();
}

/// The value that a node reads or writes.
const graph::Tensor& value(const graph::Workload& workload, const graph::Node* node,
                           std::vector<graph::Use> graph::Node::*uses) {
  const graph::Template& t = with_node(workload, node);
  const auto is_value = [&](const graph::Use& use) {
    return t.tensors[static_cast<std::size_t>(use.tensor)].memory.none();
  };
  const auto& list = node->*uses;
  return t
      .tensors[static_cast<std::size_t>(std::find_if(list.begin(), list.end(), is_value)->tensor)];
}

std::vector<graph::Sharding> over_tp(graph::Sharding::Kind kind, int dimension = 0) {
  return {{.group = plan::Axis::tp, .kind = kind, .dimension = dimension}};
}

TEST(Values, OfSequenceParallelismArePartsThenWhole) {
  // The gathered rows are whole on each of
  // four ranks, the GEMM behind makes columns of 3H/4, the one in front of the reduce-scatter a
  // summand of H, and a rank keeps a quarter of the rows.
  plan::Plan plan;
  plan.tp = 4;
  plan.sequence_parallel = true;
  const zoo::Model model = cases::small_gpt(1);
  const graph::Workload workload = lowered(model, plan, {.skip = {"fuse"}});
  const Bytes boundary = plan::boundary_bytes(model, plan);
  const graph::Node* gather = find_node(workload, "tp_all_gather");
  ASSERT_NE(gather, nullptr);
  EXPECT_EQ(value(workload, gather, &graph::Node::reads).layout,
            over_tp(graph::Sharding::Kind::shard));
  EXPECT_TRUE(value(workload, gather, &graph::Node::writes).layout.empty());
  EXPECT_EQ(value(workload, gather, &graph::Node::writes).bytes, boundary);
  const graph::Node* qkv = find_node(workload, "qkv_gemm");
  EXPECT_EQ(value(workload, qkv, &graph::Node::writes).layout,
            over_tp(graph::Sharding::Kind::shard, 1));
  EXPECT_EQ(
      value(workload, qkv, &graph::Node::writes).bytes,
      graph::size_of(graph::DataType::bf16) * qkv->operators[0].gemm.m * qkv->operators[0].gemm.n);
  const graph::Node* scatter = find_node(workload, "tp_reduce_scatter");
  EXPECT_EQ(value(workload, scatter, &graph::Node::reads).layout,
            over_tp(graph::Sharding::Kind::partial));
  EXPECT_EQ(value(workload, scatter, &graph::Node::reads).bytes, boundary);
  EXPECT_EQ(value(workload, scatter, &graph::Node::writes).layout,
            over_tp(graph::Sharding::Kind::shard));
  EXPECT_EQ(value(workload, scatter, &graph::Node::writes).bytes, boundary / 4);
}

/// The backward of attention writes the gradients of Q, K and V: three times T x H, of which each
/// of two ranks has half the heads; the gradient of a residual sum is that of the stream.
TEST(Values, OfABackwardAreTheGradientsOfWhatItsForwardReads) {
  plan::Plan plan{.attention = zoo::AttentionKernel::flash};
  const zoo::Model model = cases::small_gpt(1);
  for (const std::int64_t tp : {1, 2}) {
    plan.tp = tp;
    const graph::Workload workload = lowered(model, plan, {.skip = {"fuse"}});
    const Bytes stream = plan::boundary_bytes(model, plan);
    const graph::Node* attention = find_node(workload, "flash_attention_backward");
    ASSERT_NE(attention, nullptr);
    EXPECT_EQ(value(workload, attention, &graph::Node::writes).bytes, 3 * stream / tp);
    const graph::Node* sum = find_node(workload, "mlp_bias_dropout_residual_backward");
    ASSERT_NE(sum, nullptr);
    EXPECT_EQ(value(workload, sum, &graph::Node::writes).bytes, stream);
  }
}

/// Returns whether the node reads a sum of parts that it does not reduce.
bool reads_parts(const graph::Template& t, const graph::Node& node) {
  const bool reduces = node.kind == graph::Node::Kind::collective &&
                       (node.collective == graph::CollectiveKind::all_reduce ||
                        node.collective == graph::CollectiveKind::reduce_scatter);
  for (const graph::Use& use : node.reads) {
    for (const graph::Sharding& one : t.tensors[static_cast<std::size_t>(use.tensor)].layout) {
      if (one.kind == graph::Sharding::Kind::partial && !(reduces && node.group == one.group)) {
        return true;
      }
    }
  }
  return false;
}

RC_GTEST_PROP(Values, OnlyReductionsReadSumsOfParts, ()) {
  const cases::Case c = *cases::any_case();
  const graph::Workload workload = lowered(c.model, c.plan);
  for (const graph::Program& program : workload.programs) {
    for (const graph::Template& t : program.templates) {
      for (const graph::Node& node : t.nodes) {
        if (reads_parts(t, node)) {
          RC_FAIL("template '" + t.name + "': " + node.name + " reads a sum of parts");
        }
      }
    }
  }
}

}  // namespace
}  // namespace orrery::parallel
