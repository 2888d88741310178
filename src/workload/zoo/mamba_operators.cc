// SPDX-License-Identifier: Apache-2.0
/// The Mamba-2 mixer (Dao & Gu 2024, arXiv:2405.21060), P = head_dim, N = state, G = groups,
/// Q = chunk, d = heads P:
///
///   in_proj (H x (2 d + 2 G N + heads)) -> z, x, B, C, dt; causal convolution and SiLU over x, B,
///   C; scan; RMSNorm(y * SiLU(z)) over each group; out_proj (d x H)
///
/// A gated delta net is the same with other scalars of a head (decay and strength), the delta rule
/// instead of the scan and a norm over each head.
#include <string>

#include "workload/zoo/builder.h"

namespace orrery::zoo {
namespace {

/// Depthwise, width `kernel`, then SiLU: reads and writes x, B, C; backward also reads the input
/// again and reduces the weight's gradient. Its input (with z and dt) is saved.
ModelOperator convolution(const Shapes& shapes) {
  const Mamba& mamba = shapes.model.mamba;
  const Bytes x = shapes.wide(mamba.convolved());
  return streaming("convolution", Role::convolution, graph::OperatorKind::convolution,
                   {2 * x, 1, 3 * x, 2});
}

/// The chunked scan (state-space duality): per token, scores C B^T of its chunk (2 Q N per group),
/// their product with x (2 Q d), states B^T x (2 N d) and their part of the output C h (2 N d); the
/// kernels compute whole chunks. Published counts take 7 N d (Megatron-LM's FLOP formula).
/// Backward: every product has two gradients, and the forward ones are computed again. Reads x, B,
/// C, dt and writes y; states of d x N per chunk are written and read in fp32.
ModelOperator scan(const Shapes& shapes) {
  const Mamba& mamba = shapes.model.mamba;
  const auto number = [](std::int64_t value) { return static_cast<double>(value); };
  const double inner = number(mamba.inner());
  const double state = number(mamba.state);
  const double chunk = number(mamba.chunk);
  const double tokens = number(shapes.tokens);
  const std::int64_t chunks = (shapes.tokens + mamba.chunk - 1) / mamba.chunk;
  const Bytes states = graph::size_of(graph::DataType::fp32) * chunks * mamba.inner() * mamba.state;
  const Bytes input = shapes.wide(mamba.convolved() + mamba.heads);
  const Bytes output = shapes.wide(mamba.inner());
  ModelOperator op = streaming("state_space_scan", Role::scan, graph::OperatorKind::scan,
                               {.forward = input + output + 4 * states,
                                .forward_kernels = 5,
                                .backward = 2 * input + 2 * output + 8 * states,
                                .backward_kernels = 9});
  op.gemm = {.batch = shapes.options.microbatch * mamba.heads,
             .m = shapes.queries,
             .n = mamba.chunk,
             .k = mamba.head_dim};
  op.forward_flops = Flops(
      tokens * (2 * chunk * state * number(mamba.groups) + 2 * chunk * inner + 4 * state * inner));
  op.backward_flops = 3 * op.forward_flops;
  op.model_flops = Flops(tokens * 7 * state * inner);
  return op;
}

/// The chunked delta rule (Yang et al. 2024, arXiv:2412.06464, section 3.3), d_k = state, d_v =
/// head_dim: per token and head of values C (6 d_k + 4 d_v) + 6 d_k d_v + 2/3 C^2 of the products
/// within chunks of C tokens, of the states and of the triangular inverse; backward and traffic as of
/// scan().
ModelOperator delta_rule(const Shapes& shapes) {
  const Mamba& mamba = shapes.model.mamba;
  const auto number = [](std::int64_t value) { return static_cast<double>(value); };
  const double chunk = number(mamba.chunk);
  const double keys = number(mamba.state);
  const double values = number(mamba.head_dim);
  const double heads = number(mamba.heads) * number(shapes.tokens);
  ModelOperator op = scan(shapes);
  op.name = "delta_rule";
  op.forward_flops =
      Flops(heads * (chunk * (6 * keys + 4 * values) + 6 * keys * values + 2 * chunk * chunk / 3));
  op.backward_flops = 3 * op.forward_flops;
  op.model_flops = Flops(heads * 7 * keys * values);
  return op;
}

/// y * SiLU(z), then RMSNorm over d / G elements: reads y and z, writes one; backward reads both
/// and the gradient twice, writes two. Saves y and z.
ModelOperator gated_norm(const Shapes& shapes) {
  const Mamba& mamba = shapes.model.mamba;
  const Bytes x = shapes.wide(mamba.inner());
  ModelOperator op = streaming("gated_norm", Role::norm_gated, graph::OperatorKind::norm,
                               {3 * x, 1, (2 * 3 + 2) * x, 3});
  op.gemm.k =
      shapes.kind.mixer == MixerKind::gated_delta ? mamba.head_dim : mamba.inner() / mamba.groups;
  return op;
}

}  // namespace

int append_mamba(GraphBuilder& block, const Shapes& shapes, int x) {
  const Model& model = shapes.model;
  const Mamba& mamba = model.mamba;
  const bool delta = shapes.kind.mixer == MixerKind::gated_delta;
  // Steps dt of Mamba-2; decay and strength of the delta rule.
  const std::int64_t scalars = (delta ? 2 : 1) * mamba.heads;
  const std::int64_t projected = mamba.inner() + mamba.convolved() + scalars;
  const TensorList parts = block.products(
      {.name = "mamba_in_gemm",
       .role = Role::mamba_in,
       .out = {Dim::inner, projected},
       .further = mamba.projection_bias ? projected : 0},
      x, {{Dim::inner, mamba.inner()}, {Dim::groups, mamba.convolved()}, {Dim::heads, scalars}});
  const int gate = parts.front();
  const int channels = *(parts.begin() + 1);
  const int steps = *(parts.begin() + 2);
  const int convolved =
      block.map(convolution(shapes), {channels}, {channels},
                mamba.convolved() * (mamba.kernel + (mamba.convolution_bias ? 1 : 0)));
  const int scanned = block.like(gate);
  block.add(delta ? delta_rule(shapes) : scan(shapes),
            {.reads = {convolved, steps}, .writes = {scanned}, .saves = {convolved, steps}},
            (delta ? 2 : 3) * mamba.heads);  // A, the bias of dt and, of Mamba-2, D
  const int gated = block.map(gated_norm(shapes), {scanned, gate}, {scanned, gate},
                              delta ? mamba.head_dim : mamba.inner());
  return block.product({.name = "mamba_out_gemm",
                        .role = Role::mamba_out,
                        .out = shapes.width(),
                        .further = mamba.projection_bias ? model.hidden : 0},
                       {gated});
}

}  // namespace orrery::zoo
