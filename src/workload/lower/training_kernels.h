// SPDX-License-Identifier: Apache-2.0
/// Operators of a training step -> their compute steps, forward and backward.
///
///   GEMM with a weight, C[m,n] = A[m,k] W[k,n]:
///     input gradient  dA[m,k] = dC[m,n] W^T        weight gradient  dW[k,n] = A^T dC
///     then the gradient is added to the accumulation buffer: reads the gradient in the compute
///     type, reads and writes the buffer, unless the GEMM does so itself (fused_grad_accumulation;
///     then half of the buffer's traffic stays visible at the end of its tiles)
///     quantised (quantize.h): kernels before them that quantise the weight, the input and the
///       output gradient
///     frozen (lora.h): the input gradient alone
///   GEMM of two activations: the gradients of both, [m,n]x[n,k] and [k,m]x[m,n]
///   anything else: one step with the operator's backward FLOPs and bytes
///
/// Gradients of other parameters (norms, biases, embeddings) are accumulated by a streaming step of
/// their own size; the embedding's gradient is dense, as in PyTorch without sparse gradients, so
/// its accumulation touches the whole local table in every microbatch. Bias gradients are part of
/// the backward bytes of the operators that add the bias.
#pragma once

#include <vector>

#include "workload/lower/kernels.h"
#include "workload/plan/plan.h"

namespace orrery::lower {

class TrainingKernels : public Kernels {
 public:
  explicit TrainingKernels(const plan::Plan& plan) : plan_(plan) {}

  void append(const zoo::ModelOperator& own, const OperatorLayouts& layouts, plan::StepPhase phase,
              std::int64_t shards, std::vector<Step>& steps) const override;
  bool reads_input(const zoo::ModelOperator& own) const override;
  Bytes on_wire(const zoo::ModelOperator& own, Bytes operand) const override;
  graph::DataType result_type() const override { return plan_.compute_type; }

 private:
  const plan::Plan& plan_;
};

}  // namespace orrery::lower
