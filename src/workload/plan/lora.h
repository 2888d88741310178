// SPDX-License-Identifier: Apache-2.0
/// Low-rank adaptation: all parameters of the model are frozen, and beside a weight W[k,n] two
/// small matrices are trained, A[k,r] and B[r,n]:  Y = X W + s (X A) B.
///
///   operator          forward                     backward
///   W_lora_dropout    lora_dropout > 0: a share of X, 2 T k e + T k for the mask      as much
///   W_lora_a          T1 = X A   (T x r x k)      two GEMMs: gradients of X and of A
///   W_lora_join                                   adds both gradients of X: 3 T k e
///   W_lora_b          Y1 = T1 B  (T x n x r)      two GEMMs: gradients of T1 and of B
///   W_lora_sum        Y + s Y1: a product and a sum, 5 T n e      s dY: 2 T n e
///   W                 as ever                     the gradient of X alone
///
/// Frozen: no weight-gradient GEMM, no accumulation, no gradient, no optimizer state, no reduction;
/// parameters are stored, and gathered by ZeRO 3, as ever. The embedding has no backward. A frozen
/// GEMM saves its input for its adapter only, or where fused attention needs its own result.
/// Adapters stay in the compute type when GEMMs are quantised, so the input of a GEMM with an
/// adapter is quantised by a kernel of its own, not by the norm; a frozen GEMM's operands need one
/// copy instead of two.
///
/// Where the software has a matrix each for query, key, value, gate and up (autograd hugging_face:
/// peft), each has an adapter: 3 or 2 matrices A beside each other, B of the same elements as one.
/// peft computes them in fp32 beside weights of 16 bits, whatever reads X: a cast of X for each
/// matrix (2 + 4 bytes an element, kept for backward as fp32), the product with s and the sum in
/// fp32, and a cast of the result; backward the same way. The adapters' GEMMs are timed in the
/// compute type. Dropout follows the cast; A then keeps what is left of X, and a mask is kept.
///
/// Tensor parallelism t: of a column-parallel W, every rank has the whole A and n/t columns of B;
/// of a row-parallel W, k/t rows of A and the whole B, whose partial results join W's before the
/// reduction that W has anyway. The gradients of the whole ones are summed over tp once per step.
/// (NeMo splits both and gathers the T x r values instead.) Of experts: etp = 1.
///
/// Frozen weights of GEMMs but router and logits may be stored in a type of their own
/// (frozen_type), in one copy, q bytes an element:
///
///   fp8    1, with the scales of an fp8 recipe where `quantization` is one: GEMMs then read it as
///          it is, and before every backward a kernel writes the other layout (2 q)
///   int8   1 (LLM.int8(): a scale per row is not counted)
///   int4   1/2 + 2/64;  nf4  1/2 + (1 + 4/256)/64 (QLoRA's double quantisation)
///   all but the former are dequantised before every forward and backward GEMM: q + e
///
/// Ignores:  that the first layer's input needs no gradient; that frozen biases and norms need no
///           gradient in kernels which make it along the way; recompute_modules and schedules that
///           split the backward (refused).
/// Source:   Hu et al. 2021 (arXiv:2106.09685), section 4; Dettmers et al. 2022 (arXiv:2208.07339)
///           and 2023 (arXiv:2305.14314), section 3; NeMo's lora_tuning.target_modules.
#pragma once

#include <vector>

#include "base/result.h"
#include "workload/plan/model_parts.h"
#include "workload/plan/plan.h"
#include "workload/zoo/model.h"

namespace orrery::plan {

/// Returns whether the optimizer updates the operator's parameters.
bool is_trained(const zoo::ModelOperator& op);

/// Returns whether the operator's weight is stored in frozen_type.
bool is_packed(const Plan& plan, const zoo::ModelOperator& op);
/// Returns the bytes of weights stored so.
Bytes packed_bytes(const Plan& plan, std::int64_t elements);
/// Returns the bytes that the kernel before a GEMM reads and writes to make its operand of such a
/// weight; 0: none is needed.
Bytes unpacking_bytes(const Plan& plan, std::int64_t elements, bool backward);

/// Freezes the weights of a block. The operators of a layer get adapters, whose result the adapted
/// product adds to its own; those of the embedding lose their backward.
zoo::ModelGraph with_adapters(zoo::ModelGraph block, const Plan& plan, BlockKind kind);

/// Returns the number of parameters that adapters train in the whole model.
std::int64_t adapter_parameters(const zoo::Model& model, const Plan& plan);

/// Returns the share of 3 x forward that published tables count: NeMo's 2/3 (no weight gradients;
/// adapters not counted), so 4 FLOPs per parameter and token; 1 without adapters.
double model_flops_share(const Plan& plan);

/// Mistakes: targets that no layer has, with "did you mean"; what adapters do not go with.
Result<void> check_lora(const Plan& plan, const zoo::Model& model);

}  // namespace orrery::plan
