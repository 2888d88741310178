// SPDX-License-Identifier: Apache-2.0
/// A technique that no plan asks for: a ring reduce-scatter that follows the tiles of the product
/// whose result it adds up (T3, arXiv 2401.16677), over N ranks with V bytes:
///
/// the product runs in N pieces, and after piece k = 0 .. N-2 an engine moves a ring step of V/N.
/// An all-reduce of V becomes the same and an all-gather of V.
#pragma once

#include <vector>

#include "workload/parallel/lower.h"
#include "workload/parallel/passes.h"
#include "workload/parallel/pieces.h"
#include "workload/plan/model_parts.h"

namespace orrery::cases {

inline bool is_product(const parallel::Step& step) {
  return step.node.kind == graph::Node::Kind::compute && step.node.operators.size() == 1 &&
         step.node.operators.front().kind == graph::OperatorKind::gemm;
}

/// Whether `sum` adds up the result of the product.
inline bool adds_up(const parallel::Step& product, const parallel::Step& sum) {
  const graph::Operator& op = product.node.operators.front();
  return sum.node.kind == graph::Node::Kind::collective &&
         sum.node.group == graph::GroupIndex(plan::Axis::tp) &&
         sum.reads == parallel::Value::flow &&
         (sum.node.collective == graph::CollectiveKind::reduce_scatter ||
          sum.node.collective == graph::CollectiveKind::all_reduce) &&
         sum.node.bytes == graph::bytes_of(op.type, op.gemm.batch * op.gemm.m * op.gemm.n);
}

inline void append_tiled(const parallel::Step& product, const parallel::Step& sum,
                         std::int64_t ranks, std::vector<parallel::Step>& steps) {
  const std::vector<parallel::Step> pieces = parallel::in_pieces(product, ranks);
  parallel::Step hop = sum;
  hop.node.name = "tile";
  hop.node.collective = graph::CollectiveKind::send_recv;
  hop.node.bytes = sum.node.bytes / ranks;
  hop.node.by_engine = true;
  hop.reads = hop.writes = parallel::Value::none;
  for (std::int64_t k = 0; k < ranks; ++k) {
    steps.push_back(pieces[static_cast<std::size_t>(k)]);
    if (k + 1 < ranks) {
      hop.writes = k + 2 == ranks ? sum.writes : parallel::Value::none;
      steps.push_back(hop);
    }
  }
  if (sum.node.collective == graph::CollectiveKind::all_reduce) {
    steps.push_back(sum);
    steps.back().node.name = "tile_gather";
    steps.back().node.collective = graph::CollectiveKind::all_gather;
  }
}

inline std::vector<parallel::Step> tiled(const std::vector<parallel::Step>& steps,
                                         std::int64_t ranks) {
  std::vector<parallel::Step> result;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (i + 1 < steps.size() && is_product(steps[i]) && adds_up(steps[i], steps[i + 1])) {
      append_tiled(steps[i], steps[i + 1], ranks, result);
      ++i;
    } else {
      result.push_back(steps[i]);
    }
  }
  return result;
}

/// The plan lowered with the technique as a pass behind pass `tensor`. Requires a sound plan.
inline graph::Workload lowered_in_tiles(const zoo::Model& model, const plan::Plan& plan) {
  const parallel::Context context{
      .model = model, .plan = plan, .parts = plan::split_model(model, plan).value()};
  parallel::Draft draft;
  for (const parallel::Pass& pass : parallel::kPasses) {
    if (pass.draft != nullptr) {
      pass.draft(draft, context);
    }
    if (pass.name == "tensor" && plan.tp > 1) {
      for (parallel::BlockSteps& block : draft.steps) {
        block.forward = tiled(block.forward, plan.tp);
        block.backward = tiled(block.backward, plan.tp);
      }
    }
  }
  return parallel::transform(parallel::assemble(draft), {.plan = &plan});
}

}  // namespace orrery::cases
