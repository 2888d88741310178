// SPDX-License-Identifier: Apache-2.0
/// How the context-parallel ranks of PyTorch exchange keys and values.
#pragma once

#include "workload/plan/plan.h"

namespace orrery::plan {

/// Says whether attention runs for the keys of one rank after the other and other kernels merge
/// what the runs give, as torch.distributed.tensor.experimental.context_parallel does. Transformer
/// Engine's corrections are small beside its kernels and left out.
inline bool merges_keys(const Plan& plan) {
  return is_pytorch(plan) && plan.cp > 1 &&
         (plan.cp_exchange == ContextExchange::all_gather ||
          plan.cp_exchange == ContextExchange::p2p);
}

}  // namespace orrery::plan
