// SPDX-License-Identifier: Apache-2.0
#include "neural/layer_pass.h"
#include "neural/matrix.h"

namespace orrery::neural {

std::string linear_shape(Layer& layer, std::vector<Parameter>& parameters) {
  if (layer.in.rank() > 2) {
    return "[features] or [tokens, features]; flatten or global_pool makes features of an image";
  }
  layer.out = layer.in;
  layer.out.extents.back() = layer.width;
  const auto width = static_cast<std::size_t>(layer.width);
  parameters.push_back(
      {.name = layer.name + ".weight", .rows = width, .columns = layer.in.last(), .matrix = true});
  if (layer.bias) {
    parameters.push_back({.name = layer.name + ".bias", .rows = width});
  }
  return {};
}

void linear_forward(LayerPass& pass) {
  const Parameter& weight = pass.parameters[0];
  const std::size_t rows = pass.samples * pass.layer.in.rows();
  if (pass.layer.bias) {
    for (std::size_t i = 0; i < rows * weight.rows; ++i) {
      pass.output[i] = pass.weight(1)[i % weight.rows];
    }
  }
  const std::vector<double> turned = transposed(weight.rows, weight.columns, pass.weight(0));
  add_product({rows, weight.columns, weight.rows}, pass.inputs.front(), turned.data(), pass.output);
}

void linear_backward(LayerPass& pass) {
  const Parameter& weight = pass.parameters[0];
  const std::size_t positions = pass.layer.in.rows();
  const std::size_t rows = pass.samples * positions;
  add_product({rows, weight.rows, weight.columns}, pass.output_gradient, pass.weight(0),
              pass.input_gradients.front());
  if (pass.gradients == nullptr) {
    return;
  }
  pass.gradients->product(
      {&weight, pass.samples, positions, pass.output_gradient, pass.inputs.front()});
  if (pass.layer.bias) {
    std::vector<double> by_bias(weight.rows);
    for (std::size_t i = 0; i < rows * weight.rows; ++i) {
      by_bias[i % weight.rows] += pass.output_gradient[i];
    }
    pass.gradients->vector(pass.parameters[1], by_bias.data());
  }
}

}  // namespace orrery::neural
