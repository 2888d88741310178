// SPDX-License-Identifier: Apache-2.0
#include "workload/parallel/pieces.h"

#include <gtest/gtest.h>

#include "cases.h"
#include "workload/parallel/passes.h"
#include "workload/parallel/step_list.h"
#include "workload/parallel/tile_steps.h"

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

struct Counted {
  std::int64_t pieces = 0;
  std::int64_t tracked = 0;
  std::int64_t hops = 0;
  std::int64_t by_engine = 0;
  Bytes moved{0};
};

Counted forward_of(const plan::Plan& plan) {
  const graph::Workload workload = cases::lowered(cases::small_gpt(2), plan);
  const auto verified = graph::verify(workload);
  EXPECT_TRUE(verified) << (verified ? "" : verified.error().to_string());
  Counted counted;
  cases::each_node(workload, 0, [&](const graph::Node& node) {
    if (node.phase != graph::PhaseIndex(plan::StepPhase::forward)) {
      return;
    }
    if (node.collective == graph::CollectiveKind::send_recv) {
      ++counted.hops;
      counted.by_engine += node.by_engine ? 1 : 0;
      counted.moved += node.bytes;
    }
    for (const graph::Operator& op : node.operators) {
      counted.pieces += op.pieces == 4 ? 1 : 0;
      counted.tracked += op.tracking != graph::Tracking::none ? 1 : 0;
    }
  });
  return counted;
}

TEST(OverlapTensor, CutsProductsAndTheReduceScattersBehindThem) {
  // Two layers with SP: two products and a reduce-scatter each, in four pieces and three hops of a
  // quarter of what the reduce-scatter adds up.
  plan::Plan plan{.tp = 4, .sequence_parallel = true};
  const graph::Workload whole = cases::lowered(cases::small_gpt(2), plan);
  const cases::Tally sums = cases::collectives(
      whole, 0, plan::Axis::tp, graph::CollectiveKind::reduce_scatter, plan::StepPhase::forward);
  for (const auto how : {plan::TensorOverlap::cu_split, plan::TensorOverlap::tracked,
                         plan::TensorOverlap::tracked_mca}) {
    plan.overlap_tensor = how;
    const bool engines = how != plan::TensorOverlap::cu_split;
    const Counted counted = forward_of(plan);
    EXPECT_EQ(counted.pieces, 2 * 2 * 4) << name_of(how);
    EXPECT_EQ(counted.tracked, engines ? 2 * 2 * 4 : 0);
    EXPECT_EQ(counted.hops, 2 * 2 * 3);
    EXPECT_EQ(counted.by_engine, engines ? 2 * 2 * 3 : 0);
    // The embedding's sum, of a lookup and no product, stays a reduce-scatter of the same size.
    EXPECT_EQ(counted.moved, sums.bytes * 4 / sums.count * 3 / 4);
  }
}

TEST(OverlapTensor, LeavesTheGatherOfAnAllReduceBehindTheTiles) {
  plan::Plan plan{.tp = 4};
  plan.overlap_tensor = plan::TensorOverlap::tracked_mca;
  const graph::Workload workload = cases::lowered(cases::small_gpt(2), plan);
  const auto verified = graph::verify(workload);
  EXPECT_TRUE(verified) << (verified ? "" : verified.error().to_string());
  for (const plan::StepPhase phase : {plan::StepPhase::forward, plan::StepPhase::backward}) {
    const auto count = [&](graph::CollectiveKind kind) {
      return cases::collectives(workload, 0, plan::Axis::tp, kind, phase).count;
    };
    const std::int64_t gathers = count(graph::CollectiveKind::all_gather);
    EXPECT_GE(gathers, 2 * 2);  // of two layers; the head's input gradient is one more
    EXPECT_EQ(count(graph::CollectiveKind::send_recv), 3 * gathers);
  }
}

TEST(OverlapTensor, IsAPassThatCanBeLeftOut) {
  plan::Plan plan{.tp = 4, .sequence_parallel = true};
  const zoo::Model model = cases::small_gpt(2);
  const auto hops = [&](const LowerOptions& options) {
    return cases::collectives(cases::lowered(model, plan, options), 0, plan::Axis::tp,
                              graph::CollectiveKind::send_recv, plan::StepPhase::forward)
        .count;
  };
  plan.overlap_tensor = plan::TensorOverlap::tracked;
  EXPECT_EQ(hops({}), 12);
  EXPECT_EQ(hops({.skip = {"overlap_tensor"}}), 0);
}

TEST(OverlapTensor, TheLastPieceWaitsForNoHop) {
  // A reduction that is still under way must not hold the compute stream before the product ends.
  std::vector<Step> steps{product(),
                          collective_step(plan::Axis::tp, graph::CollectiveKind::reduce_scatter,
                                          Bytes(16384), plan::StepPhase::forward)};
  ASSERT_TRUE(sums_product(steps[0], steps[1]));
  steps = in_tiles(steps, plan::TensorOverlap::tracked, 4);
  ASSERT_EQ(steps.size(), 7U);  // piece, hop, piece, hop, piece, hop, piece
  const std::vector<StepLane> lanes(1);
  StepDependencies dependencies(lanes);
  std::vector<std::vector<int>> after;
  for (const Step& step : steps) {
    dependencies.next({.step = &step}, after.emplace_back());
  }
  EXPECT_EQ(after, (std::vector<std::vector<int>>{{}, {0}, {}, {2}, {}, {4}, {}}));
  EXPECT_EQ(steps[5].writes, Value::flow);
  EXPECT_EQ(steps[5].node.bytes, Bytes(4096));
}

}  // namespace
}  // namespace orrery::parallel
