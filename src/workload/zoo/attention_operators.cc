// SPDX-License-Identifier: Apache-2.0
#include "workload/zoo/builder.h"

namespace orrery::zoo {
namespace {

/// Activation-by-activation product of every head: no weight, nothing saved beyond its inputs.
ModelOperator head_gemm(std::string name, const Shapes& shapes, std::int64_t n, std::int64_t k) {
  const std::int64_t batch = shapes.options.microbatch * shapes.model.heads;
  const std::int64_t m = shapes.options.sequence;
  ModelOperator op;
  op.name = std::move(name);
  op.kind = OperatorKind::gemm;
  op.gemm = {.batch = batch, .m = m, .n = n, .k = k};
  op.gemm_split = GemmSplit::heads;
  op.split = Split::tensor;
  op.recompute = RecomputeGroup::selective;
  op.forward_flops = op.model_flops = flops_of(op.gemm);
  op.backward_flops = 2 * op.forward_flops;
  op.forward_bytes = (shapes.tensor(m, k) + shapes.tensor(k, n) + shapes.tensor(m, n)) * batch;
  op.backward_kernels = 0;
  return op;
}

ModelOperator core_streaming(std::string name, OperatorKind kind, const Traffic& traffic) {
  ModelOperator op = streaming(std::move(name), kind, Split::tensor, traffic);
  op.recompute = RecomputeGroup::selective;
  return op;
}

/// Fused: reads and writes the square; backward reads two and writes one. Megatron-LM's
/// scaled_upper_triang_masked_softmax skips the loads above the diagonal, but its arithmetic and
/// stores run over whole rows, and the share of bandwidth that machine files state for softmax was
/// measured on whole rows: nothing is deducted. Unfused: scale, mask and softmax each read and
/// write the square.
ModelOperator softmax(const Shapes& shapes, Bytes square) {
  const Traffic fused{
      .forward = 2 * square, .forward_kernels = 1, .backward = 3 * square, .backward_kernels = 1};
  const Traffic unfused{.forward = (2 + 2 + 2) * square,
                        .forward_kernels = 3,
                        .backward = (3 + 2 + 2) * square,
                        .backward_kernels = 3};
  ModelOperator op = core_streaming("scale_mask_softmax", OperatorKind::softmax,
                                    shapes.options.fused_kernels ? fused : unfused);
  op.saved = square;
  return op;
}

void append_unfused(std::vector<ModelOperator>& operators, const Shapes& shapes) {
  const std::int64_t sequence = shapes.options.sequence;
  const std::int64_t head_dim = shapes.model.head_dim;
  const Bytes elements = Bytes(1) * shapes.tokens * shapes.model.heads * sequence;  // B a S^2
  const Bytes square = elements * shapes.element.value();
  const Bytes mask = elements;  // one byte per element

  operators.push_back(head_gemm("score_gemm", shapes, sequence, head_dim));
  operators.push_back(softmax(shapes, square));
  if (shapes.model.attention_dropout > 0) {
    ModelOperator dropout = core_streaming("attention_dropout", OperatorKind::elementwise,
                                           {.forward = 2 * square + mask,
                                            .forward_kernels = 1,
                                            .backward = 2 * square + mask,
                                            .backward_kernels = 1});
    dropout.saved = mask + square;  // its output is an input of context_gemm
    operators.push_back(dropout);
  }
  operators.push_back(head_gemm("context_gemm", shapes, head_dim, sequence));
  // [B, a, S, d] -> [S, B, a d], contiguous; backward reads through strides.
  operators.push_back(core_streaming("context_transpose", OperatorKind::elementwise,
                                     {.forward = 2 * shapes.query_tensor, .forward_kernels = 1}));
}

/// Dao et al. 2022, 2023 (FlashAttention 1 and 2): forward 2 and backward 5 products of S x S x d
/// per head, of which a causal kernel does half. Forward reads Q, K, V and writes the output and
/// one fp32 log-sum-exp per row; backward reads them all and the output's gradient, writes dQ, dK,
/// dV (kernels: row sums of output x gradient, the products, conversion of dQ). The output itself
/// is saved as the input of proj_gemm; dropout inside the kernel repeats its random numbers and
/// stores no mask.
ModelOperator flash_attention(const Shapes& shapes) {
  const std::int64_t keys = shapes.options.sequence;
  const std::int64_t queries = keys / shapes.options.context;
  const Bytes row_sums = size_of(DataType::fp32) * shapes.tokens * shapes.model.heads;
  ModelOperator op =
      core_streaming("flash_attention", OperatorKind::attention,
                     {.forward = shapes.qkv_tensor + shapes.query_tensor + row_sums,
                      .forward_kernels = 1,
                      .backward = 2 * shapes.qkv_tensor + 2 * shapes.query_tensor + row_sums,
                      .backward_kernels = 3});
  op.gemm = {.batch = shapes.options.microbatch * shapes.model.heads,
             .m = queries,
             .n = keys,
             .k = shapes.model.head_dim};
  op.gemm_split = GemmSplit::heads;
  op.model_flops = 2 * flops_of(op.gemm);
  op.forward_flops = op.model_flops / 2;
  op.backward_flops = op.forward_flops * 5 / 2;
  op.saved = row_sums;
  op.query = shapes.query_tensor;
  op.key_value = shapes.tensor(shapes.tokens, 2 * shapes.key_value);
  return op;
}

}  // namespace

void append_attention(std::vector<ModelOperator>& operators, const Shapes& shapes) {
  if (shapes.options.attention == AttentionKernel::flash) {
    operators.push_back(flash_attention(shapes));
  } else {
    append_unfused(operators, shapes);
  }
}

}  // namespace orrery::zoo
