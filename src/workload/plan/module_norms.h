// SPDX-License-Identifier: Apache-2.0
/// Norms of PyTorch's modules.
#pragma once

#include "workload/plan/plan.h"
#include "workload/zoo/model.h"

namespace orrery::plan {

/// Says whether an RMSNorm is PyTorch's operators one by one: in transformers' modules, and
/// in eager modules without persistent_norm. PyTorch had no kernel for it before 2.9
/// (pytorch/pytorch pull request 153666).
inline bool writes_out_norms(const zoo::Model& model, const Plan& plan) {
  const bool eager = plan.autograd == Autograd::pytorch && !plan.fused_kernels;
  return model.norm == zoo::NormKind::rms_norm &&
         (plan.autograd == Autograd::hugging_face || (eager && !plan.persistent_norm));
}

}  // namespace orrery::plan
