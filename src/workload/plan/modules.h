// SPDX-License-Identifier: Apache-2.0
/// Operators of PyTorch's modules that are several kernels, and copies that its shards take.
#pragma once

#include "workload/plan/plan.h"
#include "workload/zoo/model.h"

namespace orrery::plan {

/// Says whether modules and shards are torchtitan's: its framework (framework.h) under PyTorch's
/// autograd.
inline bool is_torchtitan(const Plan& plan) {
  return plan.autograd == Autograd::pytorch && plan.framework.starts_with("torchtitan");
}

/// Says whether an RMSNorm is PyTorch's operators one by one: in transformers' modules, and
/// in eager modules without persistent_norm. PyTorch had no kernel for it before 2.9
/// (pytorch/pytorch pull request 153666).
inline bool writes_out_norms(const zoo::Model& model, const Plan& plan) {
  const bool eager = plan.autograd == Autograd::pytorch && !plan.fused_kernels;
  return model.norm == zoo::NormKind::rms_norm &&
         (plan.autograd == Autograd::hugging_face || (eager && !plan.persistent_norm));
}

/// Returns the passes over queries and keys of 16 bits, forward or backward, with which
/// torchtitan's modules rotate them as complex numbers in fp32. No compiler fuses these
/// (pytorch/torchtitan issue 15): a kernel converts (2 + 4 bytes an element), one multiplies
/// (4 + 4), one converts back (4 + 2): 10 passes. Where heads share keys, two more make a key and a
/// value for each of them (repeat_kv of torchtitan/models/llama/model.py).
inline int titan_rotation_passes(const zoo::Model& model) {
  return model.kv_heads < model.heads ? 12 : 10;
}

/// Says whether an eager loss is PyTorch's. Megatron's own makes softmax and its gradient in place
/// (megatron/core/tensor_parallel/cross_entropy.py), whatever its modules are.
inline bool has_loss_of_pytorch(const Plan& plan) {
  return !plan.framework.starts_with("megatron") && !plan.framework.starts_with("nemo");
}

/// Says whether kernels copy what shards of single parameters (FSDP2) gather and reduce: out of
/// the buffer of a gather, which lies rank by rank (2 x the gathered bytes), and gradients into
/// that of a reduction, in its type (torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py;
/// 1.4 % of an iteration of Llama 3 70B on 8 GPUs, pytorch/pytorch issue 157027). Gradients that
/// add up over microbatches before (shard_grads 1) are in a buffer of that type already.
inline bool copies_shards(const Plan& plan) {
  return plan.zero == 3 && is_torchtitan(plan);
}

}  // namespace orrery::plan
