// SPDX-License-Identifier: Apache-2.0
#include "planner/spmd/kernel_shape.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "planner/spmd/signatures.h"

namespace orrery::spmd {
namespace {

using graph::GemmShape;
using graph::OperatorKind;

std::int64_t product(const Shape& shape) {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) {
    count *= extent;
  }
  return count;
}

/// Returns the shape of what a device has of an input: its slice, and of what has a batch, which
/// comes first, a part.
Shape local_shape(const OperatorGraph& graph, const Node& node, std::size_t input,
                  const std::vector<Cut>& cuts, std::int64_t batches) {
  const Tensor& whole = graph.tensors[static_cast<std::size_t>(node.inputs[input])];
  Shape shape = whole.shape;
  const auto divide = [&](int dimension, std::int64_t parts) {
    if (dimension < static_cast<int>(shape.size())) {
      std::int64_t& extent = shape[static_cast<std::size_t>(dimension)];
      extent = std::max<std::int64_t>(1, extent / parts);
    }
  };
  for (const Cut& cut : cuts) {
    const Form form = cut.signature->inputs[input];
    if (form.is_gather()) {
      divide(form.dimension(), cut.devices);
    }
  }
  if (!graph.nodes[static_cast<std::size_t>(whole.producer)].is_load()) {
    divide(0, batches);
  }
  return shape;
}

struct Product {
  std::string_view op;
  std::array<std::size_t, 2> ranks;  ///< of the inputs
  OperatorKind kind;
  GemmShape (*gemm)(const Shape& a, const Shape& b);
};

constexpr std::array kProducts{
    Product{"bmm",
            {3, 3},
            OperatorKind::gemm,
            [](const Shape& a, const Shape& b) {
              return GemmShape{a[0], a[1], b[2], a[2]};
            }},
    Product{"matmul",
            {4, 3},
            OperatorKind::gemm,
            [](const Shape& a, const Shape& b) {
              return GemmShape{b[0], a[0] * a[2], b[2], b[1]};
            }},
    Product{"conv2d",
            {4, 4},
            OperatorKind::gemm,
            [](const Shape& a, const Shape& b) {
              const std::int64_t patch = b[2] * b[3];
              return GemmShape{1, a[0] * a[2] * a[3] / patch, b[0], b[1] * patch};
            }},
    Product{"einsum bsd,bsec->becd",
            {3, 4},
            OperatorKind::gemm,
            [](const Shape& a, const Shape& b) {
              return GemmShape{a[0], b[2] * b[3], a[2], a[1]};
            }},
    Product{"einsum becd,bsec->bsd",
            {4, 4},
            OperatorKind::gemm,
            [](const Shape& a, const Shape& b) {
              return GemmShape{a[0], b[1], a[3], a[1] * a[2]};
            }},
    Product{"einsum edh,becd->bech",
            {3, 4},
            OperatorKind::gemm,
            [](const Shape& a, const Shape& b) {
              return GemmShape{a[0], b[0] * b[2], a[2], a[1]};
            }},
    Product{"einsum ehd,bech->becd",
            {3, 4},
            OperatorKind::gemm,
            [](const Shape& a, const Shape& b) {
              return GemmShape{a[0], b[0] * b[2], a[2], a[1]};
            }},
};

struct Streaming {
  std::string_view op;
  OperatorKind kind;
};

constexpr std::array kStreaming{
    Streaming{"softmax", OperatorKind::softmax},
    Streaming{"log_softmax", OperatorKind::softmax},
    Streaming{"embedding", OperatorKind::embedding},
    Streaming{"nll_loss", OperatorKind::loss},
    Streaming{"attention", OperatorKind::opaque},
    Streaming{"top_1_gating", OperatorKind::opaque},
    Streaming{"top_2_gating", OperatorKind::opaque},
};

/// Returns the share of a kernel of the zoo's: of products by the forms of the weight, (n, k) or of
/// experts (batch, k, n); of attention and scans by their heads.
KernelShape share_of(const OperatorGraph& graph, const Node& node, const std::vector<Cut>& cuts,
                     std::int64_t batches) {
  KernelShape shape{node.kernel->kind, node.kernel->gemm};
  GemmShape& gemm = shape.gemm;
  const bool product = is_product(shape.kind);
  const bool experts = shape.kind == OperatorKind::grouped_gemm;
  const auto divide = [](std::int64_t& extent, std::int64_t parts) {
    extent = std::max<std::int64_t>(1, extent / parts);
  };
  const auto weight = static_cast<std::size_t>(graph.weight_of(node));
  if (product) {
    divide(gemm.m, batches);
  } else if (gemm.batch > 1) {
    divide(gemm.batch, batches);
  }
  for (const Cut& cut : cuts) {
    const Form form = product ? cut.signature->inputs[weight] : Form::full();
    if (!cut.signature->divides_work()) {
      continue;
    }
    if (form.is_gather()) {
      std::int64_t* const extents[] = {experts ? &gemm.batch : &gemm.n, &gemm.k, &gemm.n};
      divide(*extents[form.dimension()], cut.devices);
    } else if (product) {
      divide(gemm.m, cut.devices);
    } else if (gemm.batch > 1) {
      divide(gemm.batch, cut.devices);
    }
  }
  return shape;
}

}  // namespace

KernelShape kernel_shape(const OperatorGraph& graph, const Node& node, const std::vector<Cut>& cuts,
                         std::int64_t batches) {
  if (node.kernel) {
    return share_of(graph, node, cuts, batches);
  }
  const auto input = [&](std::size_t k) {
    return k < node.inputs.size() ? local_shape(graph, node, k, cuts, batches) : Shape{};
  };
  const Shape a = input(0);
  const Shape b = input(1);
  if (node.op == "linear" && !a.empty() && b.size() == 2) {
    return {OperatorKind::gemm, {1, product(a) / a.back(), b[0], b[1]}};
  }
  for (const Product& row : kProducts) {
    if (row.op == node.op && row.ranks[0] == a.size() && row.ranks[1] == b.size()) {
      return {row.kind, row.gemm(a, b)};
    }
  }
  if (node.op == "layer_norm") {
    return {OperatorKind::norm, {.k = a.empty() ? 0 : a.back()}};
  }
  for (const Streaming& row : kStreaming) {
    if (row.op == node.op) {
      return {row.kind, {}};
    }
  }
  return {};
}

}  // namespace orrery::spmd
