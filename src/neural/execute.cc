// SPDX-License-Identifier: Apache-2.0
#include "neural/execute.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "neural/layer_pass.h"

namespace orrery::neural {
namespace {

LayerPass pass_of(const Network& network, std::span<const double> weights, Activations& activations,
                  std::size_t number, Arithmetic arithmetic) {
  const Layer& layer = network.layers[number];
  LayerPass pass{
      .layer = layer,
      .parameters = std::span(network.parameters).subspan(layer.first_parameter, layer.parameters),
      .weights = weights.data(),
      .samples = activations.samples,
      .arithmetic = arithmetic,
      .inputs = {},
      .output = activations.outputs[number].data(),
      .saved = activations.saved[number]};
  for (const int input : layer.inputs) {
    pass.inputs.push_back(input == kNetworkInput
                              ? activations.input.data()
                              : activations.outputs[static_cast<std::size_t>(input)].data());
  }
  return pass;
}

}  // namespace

const LayerRow& row_of(LayerKind kind) {
  static constexpr std::array kLayers{
      LayerRow{LayerKind::linear, linear_shape, linear_forward, linear_backward},
      LayerRow{LayerKind::convolution, convolution_shape, convolution_forward,
               convolution_backward},
      LayerRow{LayerKind::attention, attention_shape, attention_forward, attention_backward},
      LayerRow{LayerKind::batch_norm, batch_norm_shape, norm_forward, norm_backward},
      LayerRow{LayerKind::layer_norm, layer_norm_shape, norm_forward, norm_backward},
      LayerRow{LayerKind::relu, same_shape, relu_forward, relu_backward},
      LayerRow{LayerKind::tanh, same_shape, tanh_forward, tanh_backward},
      LayerRow{LayerKind::gelu, same_shape, gelu_forward, gelu_backward},
      LayerRow{LayerKind::average_pool, window_shape, average_pool_forward, average_pool_backward},
      LayerRow{LayerKind::max_pool, window_shape, max_pool_forward, max_pool_backward},
      LayerRow{LayerKind::global_pool, global_pool_shape, global_pool_forward,
               global_pool_backward},
      LayerRow{LayerKind::flatten, flatten_shape, add_forward, add_backward},
      LayerRow{LayerKind::skip, same_shape, add_forward, add_backward},
      LayerRow{LayerKind::zero, same_shape, zero_forward, zero_backward},
      LayerRow{LayerKind::add, same_shape, add_forward, add_backward},
  };
  static_assert(kLayers.size() == kNames<LayerKind>.size());
  return *std::ranges::find(kLayers, kind, &LayerRow::kind);
}

Activations forward(const Network& network, std::span<const double> weights,
                    std::vector<double> input, Arithmetic arithmetic) {
  Activations activations;
  activations.samples = input.size() / network.input.size();
  activations.input = std::move(input);
  activations.outputs.resize(network.layers.size());
  activations.saved.resize(network.layers.size());
  for (std::size_t i = 0; i < network.layers.size(); ++i) {
    activations.outputs[i].assign(activations.samples * network.layers[i].out.size(), 0);
    LayerPass pass = pass_of(network, weights, activations, i, arithmetic);
    row_of(network.layers[i].kind).forward(pass);
  }
  return activations;
}

std::vector<double> backward(const Network& network, std::span<const double> weights,
                             Activations& activations, std::span<const double> logit_gradients,
                             Gradients* gradients, Arithmetic arithmetic) {
  std::vector<std::vector<double>> by_output(network.layers.size());
  for (std::size_t i = 0; i < network.layers.size(); ++i) {
    by_output[i].assign(activations.outputs[i].size(), 0);
  }
  by_output.back().assign(logit_gradients.begin(), logit_gradients.end());
  std::vector<double> by_input(activations.input.size());
  for (std::size_t i = network.layers.size(); i-- > 0;) {
    LayerPass pass = pass_of(network, weights, activations, i, arithmetic);
    pass.output_gradient = by_output[i].data();
    pass.gradients = gradients;
    for (const int input : network.layers[i].inputs) {
      pass.input_gradients.push_back(input == kNetworkInput
                                         ? by_input.data()
                                         : by_output[static_cast<std::size_t>(input)].data());
    }
    row_of(network.layers[i].kind).backward(pass);
  }
  return by_input;
}

Loss cross_entropy(const Network& network, const std::vector<double>& logits,
                   std::span<const int> labels) {
  const auto classes = static_cast<std::size_t>(network.classes);
  Loss loss;
  loss.logit_gradients.resize(logits.size());
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const double* const row = logits.data() + i * classes;
    double* const gradient = loss.logit_gradients.data() + i * classes;
    const auto label = static_cast<std::size_t>(labels[i]);
    const double* const greatest = std::max_element(row, row + classes);
    double total = 0;
    for (std::size_t c = 0; c < classes; ++c) {
      gradient[c] = std::exp(row[c] - *greatest);
      total += gradient[c];
    }
    for (std::size_t c = 0; c < classes; ++c) {
      gradient[c] /= total;
    }
    gradient[label] -= 1;
    loss.sum += std::log(total) - (row[label] - *greatest);
    loss.right += static_cast<std::size_t>(greatest - row) == label ? 1 : 0;
  }
  return loss;
}

}  // namespace orrery::neural
