// SPDX-License-Identifier: Apache-2.0
/// Manifold-constrained hyper-connections (Xie et al. 2025, arXiv:2512.24880; DeepSeek-AI 2026,
/// "DeepSeek-V4", section 2.2). The residual stream X is n streams of H. Around a branch F:
///
///   [p, q, M] = normalised X (n H columns) x W (n H x n (n + 2)), scaled and shifted
///   p, q: sigmoids, n each; M: n x n, made doubly stochastic by Sinkhorn and Knopp's steps
///   X' = M^T X + q F(norm(p X))
///
/// The first layer gets n copies of the embedding; the final norm gets one sum of the streams whose
/// weights come from an n H x n matrix. On every tensor-parallel rank; with sequence parallelism of
/// its own tokens. The mixing weights are fp32 and few; X is of the compute type.
#include <string>

#include "workload/zoo/builder.h"

namespace orrery::zoo {
namespace {

std::int64_t stream_width(const Model& model) {
  return model.streams * model.hidden;
}

ModelOperator mixing(const std::string& name, Role role, const Traffic& traffic) {
  return streaming(name, role, graph::OperatorKind::elementwise, Split::sequence, traffic);
}

/// T x n H x columns; saves X, whose other readers find it here.
ModelOperator mix_gemm(const std::string& name, const Shapes& shapes, std::int64_t columns) {
  return weight_gemm(name, Role::mix_project, shapes, columns, stream_width(shapes.model),
                     GemmSplit::none);
}

/// From the product to p, q and M. Fused: one kernel over `columns` fp32 values per token; the
/// norm's factor is applied to them. Unfused, X is converted to fp32 (e + 4), squared and summed
/// (4), scaled (8), and every step of M sums and divides (3 passes over n x n).
ModelOperator mix_weights(const std::string& name, const Shapes& shapes, std::int64_t columns,
                          std::int64_t steps) {
  const std::int64_t n = shapes.model.streams;
  const Bytes single = graph::size_of(graph::DataType::fp32) * shapes.tokens;
  const Bytes values = single * columns;
  const Bytes x = shapes.wide(stream_width(shapes.model));
  const Bytes apart = x + 4 * single * stream_width(shapes.model) + single * (3 * steps * n * n);
  const bool fused = shapes.options.fused_kernels;
  const int kernels = fused ? 1 : static_cast<int>(10 + 3 * steps);
  ModelOperator op = mixing(name, Role::mix_weights,
                            {.forward = 2 * values + (fused ? Bytes(0) : apart),
                             .forward_kernels = kernels,
                             .backward = 3 * values + (fused ? Bytes(0) : apart),
                             .backward_kernels = kernels});
  op.saved = 2 * values;  // before and after; the steps run again
  return op;
}

/// p X: reads n, writes one. Backward: from dx and X the gradients of p and, added to those of the
/// product and of X' (read both), of X.
ModelOperator collapse(const std::string& name, const Shapes& shapes) {
  const std::int64_t n = shapes.model.streams;
  const Bytes x = shapes.hidden_tensor;
  return mixing(name, Role::collapse, {(n + 1) * x, 1, (1 + n + 2 * n + n) * x, 1});
}

}  // namespace

std::int64_t stream_parameters(const Model& model) {
  const std::int64_t columns = model.streams * (model.streams + 2);
  return model.streams > 1 ? (stream_width(model) + 1) * columns + 3 : 0;
}

std::int64_t stream_head_parameters(const Model& model) {
  return model.streams > 1 ? (stream_width(model) + 1) * model.streams + 1 : 0;
}

void append_collapse(Operators& operators, const Shapes& shapes, const std::string& branch) {
  const Model& model = shapes.model;
  const std::int64_t columns = model.streams * (model.streams + 2);
  operators.push_back(mix_gemm(branch + "_mix_gemm", shapes, columns));
  operators.back().parameters = stream_parameters(model);
  operators.push_back(
      mix_weights(branch + "_mix_weights", shapes, columns, 2 * model.mixing_steps - 1));
  operators.push_back(collapse(branch + "_collapse", shapes));
}

/// Reads X and the branch's result, writes X'. Backward reads the gradient of X', X and the result,
/// writes the gradients of X and of the result, which is saved.
void append_expand(Operators& operators, const Shapes& shapes, const std::string& branch) {
  const std::int64_t n = shapes.model.streams;
  const Bytes x = shapes.hidden_tensor;
  operators.push_back(
      mixing(branch + "_expand", Role::expand, {(2 * n + 1) * x, 1, (3 * n + 2) * x, 1}));
  operators.back().saved = x;
}

void append_stream_copies(Operators& operators, const Shapes& shapes) {
  const Bytes traffic = (1 + shapes.model.streams) * shapes.hidden_tensor;
  operators.push_back(mixing("stream_copies", Role::copy_streams, {traffic, 1, traffic, 1}));
}

void append_stream_head(Operators& operators, const Shapes& shapes) {
  const std::int64_t n = shapes.model.streams;
  operators.push_back(mix_gemm("head_mix_gemm", shapes, n));
  operators.back().parameters = stream_head_parameters(shapes.model);
  operators.push_back(mix_weights("head_mix_weights", shapes, n, 0));
  operators.push_back(collapse("head_collapse", shapes));
}

/// n T rows of hidden states and T of the embedding, H x H each; the sum reads both and writes n T.
void append_stream_combine(Operators& operators, const Shapes& shapes) {
  const Model& model = shapes.model;
  Shapes streams = shapes;
  streams.tokens *= model.streams;
  operators.push_back(norm("hidden_norm", Role::norm_other, streams, model.hidden));
  operators.push_back(norm("embedding_norm", Role::norm_other, shapes, model.hidden));
  operators.push_back(weight_gemm("combine_gemm", Role::join_project, streams, model.hidden,
                                  model.hidden, GemmSplit::none));
  operators.push_back(weight_gemm("embedding_combine_gemm", Role::join_project, shapes,
                                  model.hidden, model.hidden, GemmSplit::none));
  const Bytes x = shapes.hidden_tensor;
  operators.push_back(
      mixing("combine", Role::join, {(2 * model.streams + 1) * x, 1, (model.streams + 1) * x, 1}));
}

}  // namespace orrery::zoo
