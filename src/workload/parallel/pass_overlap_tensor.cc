// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "workload/parallel/block_workload.h"
#include "workload/parallel/passes.h"
#include "workload/parallel/pieces.h"
#include "workload/parallel/tile_steps.h"
#include "workload/plan/tensor_overlap.h"

namespace orrery::parallel {
namespace {

graph::Tracking tracking_of(plan::TensorOverlap how) {
  switch (how) {
    case plan::TensorOverlap::tracked:
      return graph::Tracking::shared;
    case plan::TensorOverlap::tracked_mca:
      return graph::Tracking::first;
    case plan::TensorOverlap::none:
    case plan::TensorOverlap::cu_split:
    case plan::TensorOverlap::chunked:
      break;
  }
  return graph::Tracking::none;
}

Step ring_step(const Step& sum, graph::Tracking tracking, std::int64_t ranks) {
  Step hop = sum;
  hop.node.name = "tp_tile";
  hop.node.collective = graph::CollectiveKind::send_recv;
  hop.node.bytes = sum.node.bytes / ranks;
  hop.node.by_engine = tracking != graph::Tracking::none;
  hop.reads = hop.writes = Value::none;
  return hop;
}

/// The last ring step reads the result and writes the sum. The last piece, issued after it, neither
/// reads nor writes a value: it follows the others on the compute stream and must not wait for the
/// ring.
void append_tiled(const Step& product, const Step& sum, plan::TensorOverlap how, std::int64_t ranks,
                  std::vector<Step>& steps) {
  std::vector<Step> pieces = in_pieces(product, ranks);
  const graph::Tracking tracking = tracking_of(how);
  Step hop = ring_step(sum, tracking, ranks);
  for (std::int64_t k = 0; k < ranks; ++k) {
    Step& piece = pieces[static_cast<std::size_t>(k)];
    piece.node.operators.front().tracking = tracking;
    if (k + 1 == ranks) {
      piece.reads = piece.writes = Value::none;
      steps.push_back(std::move(piece));
      break;
    }
    const bool last = k + 2 == ranks;
    piece.writes = last ? product.writes : Value::none;
    hop.reads = last ? sum.reads : Value::none;
    hop.writes = last ? sum.writes : Value::none;
    steps.push_back(std::move(piece));
    steps.push_back(hop);
  }
  if (sum.node.collective == graph::CollectiveKind::all_reduce) {
    steps.push_back(sum);
    steps.back().node.name = "tp_all_gather";
    steps.back().node.collective = graph::CollectiveKind::all_gather;
  }
}

void append_pairs(const std::vector<Step>& steps, plan::BlockKind kind,
                  std::vector<SummedProduct>& pairs) {
  for (std::size_t i = 0; i + 1 < steps.size(); ++i) {
    if (steps[i].node.phase != plan::StepPhase::recompute && sums_product(steps[i], steps[i + 1])) {
      pairs.push_back({steps[i], steps[i + 1], kind});
    }
  }
}

}  // namespace

bool sums_product(const Step& product, const Step& sum) {
  if (product.node.kind != graph::Node::Kind::compute || product.node.operators.size() != 1 ||
      sum.node.kind != graph::Node::Kind::collective) {
    return false;
  }
  const graph::Operator& op = product.node.operators.front();
  const Bytes elements(op.gemm.batch * op.gemm.m * op.gemm.n);
  const bool of_result = sum.node.bytes == 2 * elements || sum.node.bytes == 4 * elements;
  return of_result && op.kind == graph::OperatorKind::gemm && op.kernels <= 1 && op.pieces == 1 &&
         sum.node.group == graph::GroupIndex(plan::Axis::tp) && sum.reads == Value::flow &&
         product.writes == Value::flow &&
         (sum.node.collective == graph::CollectiveKind::reduce_scatter ||
          sum.node.collective == graph::CollectiveKind::all_reduce);
}

std::vector<Step> in_tiles(const std::vector<Step>& steps, plan::TensorOverlap how,
                           std::int64_t ranks) {
  std::vector<Step> result;
  result.reserve(steps.size());
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (i + 1 < steps.size() && sums_product(steps[i], steps[i + 1])) {
      append_tiled(steps[i], steps[i + 1], how, ranks, result);
      ++i;
    } else {
      result.push_back(steps[i]);
    }
  }
  return result;
}

std::vector<SummedProduct> summed_products(const zoo::Model& model, const plan::Plan& plan) {
  plan::Plan apart = plan;
  apart.overlap_tensor = plan::TensorOverlap::none;
  const auto blocks = list_blocks(model, apart);
  std::vector<SummedProduct> pairs;
  for (plan::BlockKind kind = 0; kind < blocks->draft.steps.size(); ++kind) {
    append_pairs(blocks->draft.steps[kind].forward, kind, pairs);
    append_pairs(blocks->draft.steps[kind].backward, kind, pairs);
  }
  return pairs;
}

void passes::overlap_tensor(Draft& draft, const Context& context) {
  const plan::Plan& plan = context.plan;
  if (!plan::follows_tiles(plan.overlap_tensor) || plan.tp == 1) {
    return;
  }
  for (BlockSteps& block : draft.steps) {
    block.forward = in_tiles(block.forward, plan.overlap_tensor, plan.tp);
    block.backward = in_tiles(block.backward, plan.overlap_tensor, plan.tp);
  }
}

}  // namespace orrery::parallel
