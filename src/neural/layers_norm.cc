// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "neural/layer_pass.h"

namespace orrery::neural {
namespace {

constexpr double kEpsilon = 1e-5;  // beside the variance, as PyTorch's default

/// Says which elements are brought to mean 0 together.
class NormGroups {
 public:
  explicit NormGroups(const LayerPass& pass) {
    const Shape& shape = pass.layer.in;
    by_row_ = pass.layer.kind == LayerKind::layer_norm;
    width_ = by_row_ ? shape.last() : shape.at(0);
    positions_ = by_row_ ? 1 : shape.size() / width_;
    const bool together = pass.arithmetic == Arithmetic::together;
    samples_ = by_row_ || !together ? 1 : pass.samples;
    count_ = by_row_ ? pass.samples * shape.rows() : width_ * (together ? 1 : pass.samples);
  }

  std::size_t count() const { return count_; }
  std::size_t size() const { return by_row_ ? width_ : samples_ * positions_; }
  std::size_t width() const { return width_; }
  std::size_t element(std::size_t group, std::size_t i) const {
    return by_row_ ? group * width_ + i
                   : (i / positions_ * width_ + group) * positions_ + i % positions_;
  }
  /// Returns the index into gain and bias.
  std::size_t parameter(std::size_t group, std::size_t i) const {
    return by_row_ ? i : group % width_;
  }

 private:
  bool by_row_;
  std::size_t width_;
  std::size_t positions_;
  std::size_t samples_;
  std::size_t count_;
};

void add_norm_parameters(const Layer& layer, std::size_t width,
                         std::vector<Parameter>& parameters) {
  parameters.push_back({.name = layer.name + ".gain", .rows = width, .initial = 1});
  parameters.push_back({.name = layer.name + ".bias", .rows = width});
}

struct RowSums {
  double plain = 0;
  double with_normal = 0;
};

}  // namespace

std::string batch_norm_shape(Layer& layer, std::vector<Parameter>& parameters) {
  if (layer.in.rank() != 3) {
    return "[channels, height, width]: one sample alone has no statistics of other shapes; "
           "layer_norm has";
  }
  layer.out = layer.in;
  add_norm_parameters(layer, layer.in.at(0), parameters);
  return {};
}

std::string layer_norm_shape(Layer& layer, std::vector<Parameter>& parameters) {
  if (layer.in.rank() > 2) {
    return "[features] or [tokens, features]";
  }
  layer.out = layer.in;
  add_norm_parameters(layer, layer.in.last(), parameters);
  return {};
}

void norm_forward(LayerPass& pass) {
  const double* const in = pass.inputs.front();
  if (pass.arithmetic == Arithmetic::flow) {
    std::copy(in, in + pass.samples * pass.layer.in.size(), pass.output);
    return;
  }
  const NormGroups groups(pass);
  const auto size = static_cast<double>(groups.size());
  pass.saved.resize(2 * groups.count());
  for (std::size_t g = 0; g < groups.count(); ++g) {
    double mean = 0;
    for (std::size_t i = 0; i < groups.size(); ++i) {
      mean += in[groups.element(g, i)];
    }
    mean /= size;
    double variance = 0;
    for (std::size_t i = 0; i < groups.size(); ++i) {
      const double off = in[groups.element(g, i)] - mean;
      variance += off * off;
    }
    const double scale = 1 / std::sqrt(variance / size + kEpsilon);
    pass.saved[2 * g] = mean;
    pass.saved[2 * g + 1] = scale;
    for (std::size_t i = 0; i < groups.size(); ++i) {
      const std::size_t at = groups.element(g, i);
      const std::size_t p = groups.parameter(g, i);
      pass.output[at] = (in[at] - mean) * scale * pass.weight(0)[p] + pass.weight(1)[p];
    }
  }
}

void norm_backward(LayerPass& pass) {
  const double* const in = pass.inputs.front();
  double* const by_input = pass.input_gradients.front();
  if (pass.arithmetic == Arithmetic::flow) {
    for (std::size_t i = 0; i < pass.samples * pass.layer.in.size(); ++i) {
      by_input[i] += pass.output_gradient[i];
    }
    return;
  }
  const NormGroups groups(pass);
  const auto size = static_cast<double>(groups.size());
  std::vector<double> by_gain(groups.width());
  std::vector<double> by_bias(groups.width());
  for (std::size_t g = 0; g < groups.count(); ++g) {
    const double mean = pass.saved[2 * g];
    const double scale = pass.saved[2 * g + 1];
    RowSums sums;
    for (std::size_t i = 0; i < groups.size(); ++i) {
      const std::size_t at = groups.element(g, i);
      const std::size_t p = groups.parameter(g, i);
      const double normal = (in[at] - mean) * scale;
      by_gain[p] += pass.output_gradient[at] * normal;
      by_bias[p] += pass.output_gradient[at];
      sums.plain += pass.output_gradient[at] * pass.weight(0)[p];
      sums.with_normal += pass.output_gradient[at] * pass.weight(0)[p] * normal;
    }
    for (std::size_t i = 0; i < groups.size(); ++i) {
      const std::size_t at = groups.element(g, i);
      const double normal = (in[at] - mean) * scale;
      const double own = pass.output_gradient[at] * pass.weight(0)[groups.parameter(g, i)];
      by_input[at] += scale * (own - sums.plain / size - normal * sums.with_normal / size);
    }
  }
  if (pass.gradients != nullptr) {
    pass.gradients->vector(pass.parameters[0], by_gain.data());
    pass.gradients->vector(pass.parameters[1], by_bias.data());
  }
}

}  // namespace orrery::neural
