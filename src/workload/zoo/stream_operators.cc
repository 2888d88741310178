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
  return streaming(name, role, graph::OperatorKind::elementwise, traffic);
}

/// Returns what leads from the product to p, q and M. Fused, it is one kernel over `columns` fp32
/// values per token, to which the norm's factor is applied. Unfused, X is converted to fp32 (e +
/// 4), squared and summed (4), scaled (8), and every step of M sums and divides (3 passes over n x
/// n).
ModelOperator mix_weights(const std::string& name, const Shapes& shapes, std::int64_t columns,
                          std::int64_t steps) {
  const std::int64_t n = shapes.model.streams;
  const Bytes single = graph::size_of(graph::DataType::fp32) * shapes.tokens;
  const Bytes values = single * columns;
  const Bytes x = shapes.wide(stream_width(shapes.model));
  const Bytes apart = x + 4 * single * stream_width(shapes.model) + single * (3 * steps * n * n);
  const bool fused = shapes.options.fused_kernels;
  const int kernels = fused ? 1 : static_cast<int>(10 + 3 * steps);
  return mixing(name, Role::mix_weights,
                {.forward = 2 * values + (fused ? Bytes(0) : apart),
                 .forward_kernels = kernels,
                 .backward = 3 * values + (fused ? Bytes(0) : apart),
                 .backward_kernels = kernels});
}

/// p X: reads n, writes one. Backward: from dx and X the gradients of p and, added to those of the
/// product and of X' (read both), of X.
ModelOperator collapse(const std::string& name, const Shapes& shapes) {
  const std::int64_t n = shapes.model.streams;
  const Bytes x = shapes.hidden_tensor;
  return mixing(name, Role::collapse, {(n + 1) * x, 1, (1 + n + 2 * n + n) * x, 1});
}

struct Mixing {
  std::int64_t columns = 0;
  std::int64_t steps = 0;       ///< of making M doubly stochastic
  std::int64_t parameters = 0;  ///< the matrix' and others
};

/// The product of X, which its other readers find here, with n H x columns of the `parameters`; the
/// weights of the streams before and after, which are kept; the sum by them, which is returned.
int append_weighted_sum(GraphBuilder& block, const Shapes& shapes, const std::string& prefix,
                        Streams& streams, const Mixing& mixing) {
  const std::int64_t width = stream_width(shapes.model);
  const int product = block.product({.name = prefix + "_mix_gemm",
                                     .role = Role::mix_project,
                                     .out = {Dim::none, mixing.columns},
                                     .further = mixing.parameters - width * mixing.columns},
                                    {streams.values});
  const Form form{shapes.rows(), {Dim::none, mixing.columns}};
  const int before = block.buffer(form, graph::DataType::fp32);
  streams.weights = block.activation(form, graph::DataType::fp32);
  const TensorList weights{before, streams.weights};
  block.add(mix_weights(prefix + "_mix_weights", shapes, mixing.columns, mixing.steps),
            {.reads = {product}, .writes = weights, .saves = weights});
  const int sum = block.activation({shapes.rows(), shapes.width()});
  block.add(collapse(prefix + "_collapse", shapes),
            {.reads = {streams.values, streams.weights}, .writes = {sum}});
  return sum;
}

}  // namespace

std::int64_t stream_parameters(const Model& model) {
  const std::int64_t columns = model.streams * (model.streams + 2);
  return model.streams > 1 ? (stream_width(model) + 1) * columns + 3 : 0;
}

std::int64_t stream_head_parameters(const Model& model) {
  return model.streams > 1 ? (stream_width(model) + 1) * model.streams + 1 : 0;
}

int append_collapse(GraphBuilder& block, const Shapes& shapes, const std::string& branch,
                    Streams& streams) {
  const Model& model = shapes.model;
  return append_weighted_sum(block, shapes, branch, streams,
                             {.columns = model.streams * (model.streams + 2),
                              .steps = 2 * model.mixing_steps - 1,
                              .parameters = stream_parameters(model)});
}

/// Reads X and the branch's result, writes X'. Backward reads the gradient of X', X and the result,
/// writes the gradients of X and of the result, which is kept.
int append_expand(GraphBuilder& block, const Shapes& shapes, const std::string& branch,
                  const Streams& streams, int y) {
  const std::int64_t n = shapes.model.streams;
  const Bytes x = shapes.hidden_tensor;
  return block.map(
      mixing(branch + "_expand", Role::expand, {(2 * n + 1) * x, 1, (3 * n + 2) * x, 1}),
      {streams.values, streams.weights, y}, {y});
}

int append_stream_copies(GraphBuilder& block, const Shapes& shapes, int x) {
  const Bytes traffic = (1 + shapes.model.streams) * shapes.hidden_tensor;
  const int copies =
      block.activation({shapes.rows(), {Dim::none, shapes.model.streams}, shapes.width()});
  block.add(mixing("stream_copies", Role::copy_streams, {traffic, 1, traffic, 1}),
            {.reads = {x}, .writes = {copies}});
  return copies;
}

int append_stream_head(GraphBuilder& block, const Shapes& shapes, int x) {
  Streams streams{.values = x};
  return append_weighted_sum(block, shapes, "head", streams,
                             {.columns = shapes.model.streams,
                              .steps = 0,
                              .parameters = stream_head_parameters(shapes.model)});
}

/// n T rows of hidden states and T of the embedding, H x H each; the sum reads both and writes n T.
int append_stream_combine(GraphBuilder& block, const Shapes& shapes, int x, int embedding) {
  const Model& model = shapes.model;
  Shapes streams = shapes;
  streams.tokens *= model.streams;
  const int rows = block.view(x, {streams.rows(), shapes.width()});
  const int hidden =
      append_norm(block, streams, "hidden_norm", Role::norm_other, rows, model.hidden);
  const int even =
      append_norm(block, shapes, "embedding_norm", Role::norm_other, embedding, model.hidden);
  const int projected = block.product(
      {.name = "combine_gemm", .role = Role::join_project, .out = shapes.width()}, {hidden});
  const int added = block.product(
      {.name = "embedding_combine_gemm", .role = Role::join_project, .out = shapes.width()},
      {even});
  const Bytes size = shapes.hidden_tensor;
  const int sum =
      block.map(mixing("combine", Role::join,
                       {(2 * model.streams + 1) * size, 1, (model.streams + 1) * size, 1}),
                {projected, added});
  return block.view(sum, {shapes.rows(), {Dim::none, model.streams}, shapes.width()});
}

}  // namespace orrery::zoo
