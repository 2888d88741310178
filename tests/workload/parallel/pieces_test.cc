// SPDX-License-Identifier: Apache-2.0
#include "workload/parallel/pieces.h"

#include <gtest/gtest.h>

#include "cases.h"
#include "tile.h"

namespace orrery::parallel {
namespace {

Step product() {
  Step step = compute_step({.name = "up",
                            .kind = graph::OperatorKind::gemm,
                            .gemm = {.batch = 1, .m = 128, .n = 64, .k = 32},
                            .flops = Flops(600),
                            .bytes = Bytes(100)},
                           plan::StepPhase::forward);
  step.node.host_sync = true;
  return step;
}

TEST(Pieces, HaveTheirPartOfTheWorkAndOneDispatch) {
  // 100 bytes in three: 33, 33 and 34; 600 FLOPs: 200 each. The last one makes the result.
  const std::vector<Step> pieces = in_pieces(product(), 3);
  ASSERT_EQ(pieces.size(), 3U);
  const std::int64_t bytes[] = {33, 33, 34};
  for (int i = 0; i < 3; ++i) {
    const Step& piece = pieces[static_cast<std::size_t>(i)];
    const graph::Operator& op = piece.node.operators.front();
    EXPECT_EQ(op.piece, i);
    EXPECT_EQ(op.pieces, 3);
    EXPECT_EQ(op.gemm, product().node.operators.front().gemm);
    EXPECT_EQ(op.flops, Flops(200));
    EXPECT_EQ(op.bytes, Bytes(bytes[i]));
    EXPECT_EQ(op.kernels, i == 0 ? 1 : 0);
    EXPECT_EQ(piece.reads, Value::flow);
    EXPECT_EQ(piece.writes, i == 2 ? Value::flow : Value::none);
    EXPECT_EQ(piece.node.host_sync, i == 2);
  }
}

TEST(Pieces, OneIsTheStep) {
  EXPECT_EQ(in_pieces(product(), 1), std::vector<Step>{product()});
}

TEST(Pieces, NobodyWaitsForBecomeOneNode) {
  Draft draft;
  graph::Workload workload = plan::step_workload({{{plan::Axis::tp, 1}}});
  graph::Template t{.name = "a", .nodes = {}};
  for (const Step& piece : in_pieces(product(), 4)) {
    t.nodes.push_back(piece.node);
  }
  workload.programs.push_back({.templates = {t}});
  workload = passes::fuse(std::move(workload), {});
  const std::vector<graph::Node>& nodes = workload.programs.front().templates.front().nodes;
  ASSERT_EQ(nodes.size(), 2U);  // the last one holds the host
  EXPECT_EQ(nodes.front().operators.size(), 3U);
}

TEST(Pieces, TheTilesOfAPlanAreAVerifiedWorkload) {
  // Of two layers with SP: two products and a reduce-scatter each, in four pieces and three hops.
  const plan::Plan plan{.tp = 4, .sequence_parallel = true};
  const zoo::Model model = cases::small_gpt(2);
  const graph::Workload workload = cases::lowered_in_tiles(model, plan);
  const auto verified = graph::verify(workload);
  EXPECT_TRUE(verified) << (verified ? "" : verified.error().to_string());
  std::int64_t pieces = 0;
  std::int64_t hops = 0;
  cases::each_node(workload, 0, [&](const graph::Node& node) {
    if (node.phase != graph::PhaseIndex(plan::StepPhase::forward)) {
      return;
    }
    hops += node.by_engine ? 1 : 0;
    for (const graph::Operator& op : node.operators) {
      pieces += op.pieces == 4 ? 1 : 0;
    }
  });
  EXPECT_EQ(pieces, 2 * 2 * 4);
  EXPECT_EQ(hops, 2 * 2 * 3);
}

}  // namespace
}  // namespace orrery::parallel
