// SPDX-License-Identifier: Apache-2.0
/// One layer over a batch, forward and backward: a row of kLayers per kind. Private to neural.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "neural/execute.h"
#include "neural/gradients.h"
#include "neural/network.h"

namespace orrery::neural {

/// Arrays are [samples, size of a sample].
struct LayerPass {
  const Layer& layer;
  std::span<const Parameter> parameters;
  const double* weights;  ///< of the whole network, as Parameter::offset counts
  std::size_t samples;
  Arithmetic arithmetic;
  std::vector<const double*> inputs;
  double* output;
  std::vector<double>& saved;  ///< what backward needs besides inputs and output
  // Of backward alone; gradients by inputs are added to.
  const double* output_gradient = nullptr;
  std::vector<double*> input_gradients{};
  Gradients* gradients = nullptr;

  const double* weight(std::size_t i) const { return weights + parameters[i].offset; }
};

/// The shape of the output, and the parameters; "" or what would be right instead of the input.
using ShapeRule = std::string (*)(Layer& layer, std::vector<Parameter>& parameters);
using LayerRule = void (*)(LayerPass& pass);

struct LayerRow {
  LayerKind kind;
  ShapeRule shape;
  LayerRule forward;
  LayerRule backward;
};

const LayerRow& row_of(LayerKind kind);

// layers_dense.cc
std::string linear_shape(Layer& layer, std::vector<Parameter>& parameters);
void linear_forward(LayerPass& pass);
void linear_backward(LayerPass& pass);
// layers_attention.cc
std::string attention_shape(Layer& layer, std::vector<Parameter>& parameters);
void attention_forward(LayerPass& pass);
void attention_backward(LayerPass& pass);
// layers_image.cc
std::string convolution_shape(Layer& layer, std::vector<Parameter>& parameters);
void convolution_forward(LayerPass& pass);
void convolution_backward(LayerPass& pass);
// layers_pool.cc
std::string window_shape(Layer& layer, std::vector<Parameter>& parameters);
void average_pool_forward(LayerPass& pass);
void average_pool_backward(LayerPass& pass);
void max_pool_forward(LayerPass& pass);
void max_pool_backward(LayerPass& pass);
std::string global_pool_shape(Layer& layer, std::vector<Parameter>& parameters);
void global_pool_forward(LayerPass& pass);
void global_pool_backward(LayerPass& pass);
// layers_norm.cc
std::string batch_norm_shape(Layer& layer, std::vector<Parameter>& parameters);
std::string layer_norm_shape(Layer& layer, std::vector<Parameter>& parameters);
void norm_forward(LayerPass& pass);
void norm_backward(LayerPass& pass);
// layers_plain.cc
std::string same_shape(Layer& layer, std::vector<Parameter>& parameters);
std::string flatten_shape(Layer& layer, std::vector<Parameter>& parameters);
void relu_forward(LayerPass& pass);
void relu_backward(LayerPass& pass);
void tanh_forward(LayerPass& pass);
void tanh_backward(LayerPass& pass);
void gelu_forward(LayerPass& pass);
void gelu_backward(LayerPass& pass);
void add_forward(LayerPass& pass);
void add_backward(LayerPass& pass);
void zero_forward(LayerPass& pass);
void zero_backward(LayerPass& pass);

}  // namespace orrery::neural
