// SPDX-License-Identifier: Apache-2.0
/// Pass operators are what a pass does with an operator of a model's layer.
#pragma once

#include "workload/zoo/model.h"

namespace orrery::step {

inline bool is_product(const zoo::ModelOperator& op) {
  return op.kind == graph::OperatorKind::gemm || op.kind == graph::OperatorKind::grouped_gemm;
}

/// Done by the norm's kernel after it, as an epilogue of the GEMM before, or by what sees requests
/// apart: attention, a recurrence.
inline bool is_left_out(const zoo::Model& model, const zoo::ModelOperator& op) {
  const bool fuses = model.norm_place == zoo::NormPlace::before && model.streams == 1;
  return op.kind == graph::OperatorKind::attention || op.kind == graph::OperatorKind::scan ||
         op.kind == graph::OperatorKind::loss || op.name == "qkv_split" ||
         (!is_product(op) && op.forward_kernels == 0) || (fuses && op.name.ends_with("_residual"));
}

/// Adds to the residual stream or norms it: work on tokens, between a sum and its reader.
inline bool is_of_stream(const zoo::ModelOperator& op) {
  return op.name == "input_norm" || op.name == "mlp_norm" || op.name.ends_with("_post_norm") ||
         op.name.ends_with("_residual");
}

/// Sums over the tensor-parallel group after it. The shared expert's part is summed with the routed
/// ones'.
inline bool ends_branch(const zoo::ModelOperator& op, bool routes) {
  return op.boundary == zoo::TensorBoundary::leave && !(routes && op.name != "proj_gemm");
}

}  // namespace orrery::step
