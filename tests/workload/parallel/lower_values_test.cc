// SPDX-License-Identifier: Apache-2.0
// Values between the nodes of a lowered step: bytes on one rank, and how ranks hold them together.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "cases.h"

namespace orrery {
namespace {

using cases::find_node;
using cases::lowered;

const Template& with_node(const Workload& workload, const Node* node) {
  for (const Template& t : workload.program_of(0).templates) {
    if (node >= t.nodes.data() && node < t.nodes.data() + t.nodes.size()) {
      return t;
    }
  }
  return workload.program_of(0).templates.front();
}

/// The value that a node reads or writes.
const Tensor& value(const Workload& workload, const Node* node, std::vector<Use> Node::*uses) {
  const Template& t = with_node(workload, node);
  const auto is_value = [&](const Use& use) {
    return t.tensors[static_cast<std::size_t>(use.tensor)].memory.none();
  };
  const auto& list = node->*uses;
  return t
      .tensors[static_cast<std::size_t>(std::find_if(list.begin(), list.end(), is_value)->tensor)];
}

std::vector<Sharding> over_tp(Sharding::Kind kind, int dimension = 0) {
  return {{.group = Axis::tp, .kind = kind, .dimension = dimension}};
}

TEST(Values, OfSequenceParallelismArePartsThenWhole) {
  // The gathered rows are whole on each of
  // four ranks, the GEMM behind makes columns of 3H/4, the one in front of the reduce-scatter a
  // summand of H, and a rank keeps a quarter of the rows.
  Plan plan;
  plan.tp = 4;
  plan.sequence_parallel = true;
  const Model model = cases::small_gpt(1);
  const Workload workload = lowered(model, plan, {.skip = {"fuse"}});
  const Bytes boundary = boundary_bytes(model, plan);
  const Node* gather = find_node(workload, "tp_all_gather");
  ASSERT_NE(gather, nullptr);
  EXPECT_EQ(value(workload, gather, &Node::reads).layout, over_tp(Sharding::Kind::shard));
  EXPECT_TRUE(value(workload, gather, &Node::writes).layout.empty());
  EXPECT_EQ(value(workload, gather, &Node::writes).bytes, boundary);
  const Node* qkv = find_node(workload, "qkv_gemm");
  EXPECT_EQ(value(workload, qkv, &Node::writes).layout, over_tp(Sharding::Kind::shard, 1));
  EXPECT_EQ(value(workload, qkv, &Node::writes).bytes,
            size_of(DataType::bf16) * qkv->operators[0].gemm.m * qkv->operators[0].gemm.n);
  const Node* scatter = find_node(workload, "tp_reduce_scatter");
  EXPECT_EQ(value(workload, scatter, &Node::reads).layout, over_tp(Sharding::Kind::partial));
  EXPECT_EQ(value(workload, scatter, &Node::reads).bytes, boundary);
  EXPECT_EQ(value(workload, scatter, &Node::writes).layout, over_tp(Sharding::Kind::shard));
  EXPECT_EQ(value(workload, scatter, &Node::writes).bytes, boundary / 4);
}

RC_GTEST_PROP(Values, OnlyReductionsReadSumsOfParts, ()) {
  const cases::Case c = *cases::any_case();
  const Workload workload = lowered(c.model, c.plan);
  for (const Program& program : workload.programs) {
    for (const Template& t : program.templates) {
      for (const Node& node : t.nodes) {
        for (const Use& use : node.reads) {
          for (const Sharding& one : t.tensors[static_cast<std::size_t>(use.tensor)].layout) {
            const bool reduces = node.kind == Node::Kind::collective && node.group == one.group &&
                                 (node.collective == CollectiveKind::all_reduce ||
                                  node.collective == CollectiveKind::reduce_scatter);
            if (one.kind == Sharding::Kind::partial && !reduces) {
              RC_FAIL("template '" + t.name + "': " + node.name + " reads a sum of parts");
            }
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace orrery
