// SPDX-License-Identifier: Apache-2.0
/// A small network that is really computed: a graph of layers with shapes and parameters.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/names.h"

namespace orrery::neural {

enum class LayerKind : std::uint8_t {
  linear,
  convolution,
  attention,
  batch_norm,
  layer_norm,
  relu,
  tanh,
  gelu,
  average_pool,
  max_pool,
  global_pool,
  flatten,
  skip,
  zero,
  add
};
constexpr auto named_values(LayerKind) {
  return std::to_array<Named<LayerKind>>({
      {LayerKind::linear, "linear", "y = W x + b over the last extent"},
      {LayerKind::convolution, "convolution", "square kernel, zero padding of (kernel - 1) / 2"},
      {LayerKind::attention, "attention", "self-attention of tokens over `heads` heads"},
      {LayerKind::batch_norm, "batch_norm", "each channel to mean 0 and variance 1, then scaled"},
      {LayerKind::layer_norm, "layer_norm", "the last extent to mean 0 and variance 1"},
      {LayerKind::relu, "relu", "max(x, 0)"},
      {LayerKind::tanh, "tanh", "tanh(x)"},
      {LayerKind::gelu, "gelu", "x times the standard normal distribution at x"},
      {LayerKind::average_pool, "average_pool", "mean of a square window, padding not counted"},
      {LayerKind::max_pool, "max_pool", "greatest of a square window"},
      {LayerKind::global_pool, "global_pool", "mean over the positions of an image or of tokens"},
      {LayerKind::flatten, "flatten", "all extents as one"},
      {LayerKind::skip, "skip", "the input as it is"},
      {LayerKind::zero, "zero", "zeros of the input's shape: no connection"},
      {LayerKind::add, "add", "the sum of several inputs of one shape"},
  });
}

/// Extents of one sample: [features], [tokens, features] or [channels, height, width].
struct Shape {
  std::vector<std::int64_t> extents{};

  std::size_t size() const {
    std::int64_t product = 1;
    for (const std::int64_t extent : extents) {
      product *= extent;
    }
    return static_cast<std::size_t>(product);
  }
  std::size_t rank() const { return extents.size(); }
  std::size_t at(std::size_t i) const { return static_cast<std::size_t>(extents[i]); }
  std::size_t last() const { return at(rank() - 1); }
  /// Returns the number of rows of the last extent.
  std::size_t rows() const { return size() / last(); }

  friend bool operator==(const Shape&, const Shape&) = default;
};

/// Returns "3 x 8 x 8".
std::string to_string(const Shape& shape);

/// A tensor of weights, at `offset` of the network's one array.
struct Parameter {
  std::string name{};  ///< "stem.weight"
  std::size_t offset = 0;
  std::size_t rows = 0;
  std::size_t columns = 1;
  bool matrix = false;  ///< of a convolution, a linear layer or attention; not a bias, not a norm's
  double initial = 0;   ///< of what is no matrix; matrices are drawn (weights.h)

  std::size_t size() const { return rows * columns; }
};

/// The network's own input as an input of a layer.
inline constexpr int kNetworkInput = -1;

struct Layer {
  std::string name{};
  LayerKind kind = LayerKind::skip;
  std::vector<int> inputs{};  ///< earlier layers, or kNetworkInput
  std::int64_t width = 0;     ///< features of linear, channels of convolution
  std::int64_t kernel = 0;    ///< of convolution and pools
  std::int64_t stride = 1;
  std::int64_t heads = 1;  ///< of attention
  bool bias = false;       ///< of linear and convolution
  Shape in{};              ///< of the first input
  Shape out{};
  std::size_t first_parameter = 0;  ///< index into Network::parameters
  std::size_t parameters = 0;
};

struct Network {
  std::string name{};
  Shape input;
  std::int64_t classes = 0;
  std::vector<Layer> layers;  ///< inputs before users; the last has `classes` outputs
  std::vector<Parameter> parameters;
  std::size_t weights = 0;         ///< elements of all parameters
  std::optional<double> accuracy;  ///< as its file states it: measured by the user
};

/// Multiply-adds of one sample's forward pass count two each; products alone.
double forward_flops(const Network& network);

}  // namespace orrery::neural
