// SPDX-License-Identifier: Apache-2.0
/// Pass operators are what a pass does with an operator of a model's layer.
#pragma once

#include <algorithm>

#include "serving/step/precision.h"
#include "workload/zoo/model.h"

namespace orrery::step {

inline bool is_product(const zoo::ModelOperator& op) {
  return op.kind == graph::OperatorKind::gemm || op.kind == graph::OperatorKind::grouped_gemm;
}

/// Says whether the model makes a vector of a text, and no tokens: all layers attend to all of it.
inline bool embeds(const zoo::Model& model) {
  return model.input == zoo::InputKind::tokens && !model.kinds.empty() &&
         std::ranges::all_of(model.kinds, [](const zoo::LayerKind& kind) {
           return kind.mixer == zoo::MixerKind::attention && !kind.causal && !kind.cross_attention;
         });
}

/// Returns whether an operator is done by the norm's kernel after it, as an epilogue of the GEMM
/// before, or by what sees requests apart: attention, a recurrence.
inline bool is_left_out(const zoo::Model& model, const zoo::ModelOperator& op) {
  const bool fuses = model.norm_place == zoo::NormPlace::before && model.streams == 1;
  return op.kind == graph::OperatorKind::attention || op.kind == graph::OperatorKind::scan ||
         op.kind == graph::OperatorKind::loss || op.role == graph::OperatorRole::split_qkv ||
         op.role == graph::OperatorRole::index_top_k ||
         (!is_product(op) && op.forward_kernels == 0) ||
         (fuses && op.role == graph::OperatorRole::residual);
}

/// Adds to the residual stream or norms it: work on tokens, between a sum and its reader.
inline bool is_of_stream(const zoo::ModelOperator& op) {
  return op.role == graph::OperatorRole::norm_branch || op.role == graph::OperatorRole::norm_post ||
         op.role == graph::OperatorRole::residual;
}

/// Says whether a matrix is in the narrow formats.
inline bool is_narrow(const zoo::ModelOperator& op, Narrow narrow) {
  using Role = graph::OperatorRole;
  if (!op.has_weight || op.role == Role::logits || op.role == Role::router) {
    return false;  // as quantised checkpoints have them
  }
  const bool mlp = op.role == Role::up || op.role == Role::down;
  return narrow == Narrow::all || op.expert || (narrow != Narrow::experts && mlp) ||
         (narrow == Narrow::outputs && op.role == Role::project_out);
}

/// Returns the product of an expert as it lies in memory: where experts alone have 4 bits (mxfp4),
/// widths of the stream are multiples of 256 and inner ones of 128, the rest zeros. Source: vLLM's
/// Mxfp4MoEMethod, for Marlin's and FlashInfer's kernels.
graph::GemmShape padded_expert(const zoo::Model& model, const zoo::ModelOperator& op,
                               const Precision& precision);

/// Returns the operator of what is no product.
inline graph::Operator streamed(const zoo::Model& model, const zoo::ModelOperator& op) {
  graph::Operator run{.name = {}, .kind = op.kind, .gemm = {}};
  run.bytes = op.forward_bytes;
  run.kernels = op.forward_kernels;
  if (op.kind == graph::OperatorKind::norm && model.norm_place == zoo::NormPlace::before &&
      op.role == graph::OperatorRole::norm_branch) {
    run.bytes = 2 * run.bytes;  // with the residual stream: read, added to, written
  } else if (op.kind == graph::OperatorKind::permute) {
    run.kernels = 1;
  }
  return run;
}

}  // namespace orrery::step
