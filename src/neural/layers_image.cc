// SPDX-License-Identifier: Apache-2.0
#include "neural/layer_pass.h"
#include "neural/matrix.h"
#include "neural/window.h"

namespace orrery::neural {
namespace {

std::size_t positions_of(const Layer& layer) {
  return layer.out.at(1) * layer.out.at(2);
}

/// visit(row of the unfolded image, output position, element of the image) for all that lie inside.
template <class Visit>
void each_unfolded(const Layer& layer, const Visit& visit) {
  const std::size_t image = layer.in.at(1) * layer.in.at(2);
  const auto kernel = static_cast<std::size_t>(layer.kernel * layer.kernel);
  for (std::size_t p = 0; p < positions_of(layer); ++p) {
    const Window window = window_of(layer, p);
    for (std::size_t c = 0; c < layer.in.at(0); ++c) {
      window.each([&](std::size_t at, std::size_t element) {
        visit(c * kernel + element, p, c * image + at);
      });
    }
  }
}

/// Returns one sample as [channels x kernel x kernel, positions], zeros outside (im2col).
std::vector<double> unfolded(const Layer& layer, std::size_t rows, const double* image) {
  const std::size_t positions = positions_of(layer);
  std::vector<double> columns(rows * positions);
  each_unfolded(layer, [&](std::size_t row, std::size_t p, std::size_t at) {
    columns[row * positions + p] = image[at];
  });
  return columns;
}

}  // namespace

std::string convolution_shape(Layer& layer, std::vector<Parameter>& parameters) {
  if (layer.in.rank() != 3) {
    return "[channels, height, width]";
  }
  const auto channels = static_cast<std::size_t>(layer.width);
  layer.out.extents = {layer.width, (layer.in.extents[1] - 1) / layer.stride + 1,
                       (layer.in.extents[2] - 1) / layer.stride + 1};
  const auto kernel = static_cast<std::size_t>(layer.kernel * layer.kernel);
  parameters.push_back({.name = layer.name + ".weight",
                        .rows = channels,
                        .columns = layer.in.at(0) * kernel,
                        .matrix = true});
  if (layer.bias) {
    parameters.push_back({.name = layer.name + ".bias", .rows = channels});
  }
  return {};
}

void convolution_forward(LayerPass& pass) {
  const Parameter& weight = pass.parameters[0];
  const std::size_t positions = positions_of(pass.layer);
  for (std::size_t i = 0; i < pass.samples; ++i) {
    double* const output = pass.output + i * pass.layer.out.size();
    if (pass.layer.bias) {
      for (std::size_t k = 0; k < weight.rows * positions; ++k) {
        output[k] = pass.weight(1)[k / positions];
      }
    }
    const std::vector<double> columns =
        unfolded(pass.layer, weight.columns, pass.inputs.front() + i * pass.layer.in.size());
    add_product({weight.rows, weight.columns, positions}, pass.weight(0), columns.data(), output);
  }
}

void convolution_backward(LayerPass& pass) {
  const Parameter& weight = pass.parameters[0];
  const std::size_t positions = positions_of(pass.layer);
  for (std::size_t i = 0; i < pass.samples; ++i) {
    const double* const delta = pass.output_gradient + i * pass.layer.out.size();
    std::vector<double> by_columns(weight.columns * positions);
    add_transposed_product({weight.columns, weight.rows, positions}, pass.weight(0), delta,
                           by_columns.data());
    double* const by_image = pass.input_gradients.front() + i * pass.layer.in.size();
    each_unfolded(pass.layer, [&](std::size_t row, std::size_t p, std::size_t at) {
      by_image[at] += by_columns[row * positions + p];
    });
    if (pass.gradients == nullptr) {
      continue;
    }
    const std::vector<double> columns =
        unfolded(pass.layer, weight.columns, pass.inputs.front() + i * pass.layer.in.size());
    const std::vector<double> deltas = transposed(weight.rows, positions, delta);
    const std::vector<double> inputs = transposed(weight.columns, positions, columns.data());
    pass.gradients->product({&weight, 1, positions, deltas.data(), inputs.data()});
    if (pass.layer.bias) {
      std::vector<double> by_bias(weight.rows);
      for (std::size_t k = 0; k < weight.rows * positions; ++k) {
        by_bias[k / positions] += delta[k];
      }
      pass.gradients->vector(pass.parameters[1], by_bias.data());
    }
  }
}

}  // namespace orrery::neural
