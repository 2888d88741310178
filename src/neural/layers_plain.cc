// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <numbers>

#include "neural/layer_pass.h"

namespace orrery::neural {
namespace {

constexpr double kHalfRoot = std::numbers::sqrt2 / 2;

std::size_t elements_of(const LayerPass& pass) {
  return pass.samples * pass.layer.out.size();
}

/// output = f(input), element by element.
template <class Function>
void map_forward(const LayerPass& pass, const Function& f) {
  for (std::size_t i = 0; i < elements_of(pass); ++i) {
    pass.output[i] = f(pass.inputs.front()[i]);
  }
}

/// `slope(input, output)`.
template <class Function>
void map_backward(const LayerPass& pass, const Function& slope) {
  for (std::size_t i = 0; i < elements_of(pass); ++i) {
    pass.input_gradients.front()[i] +=
        pass.output_gradient[i] * slope(pass.inputs.front()[i], pass.output[i]);
  }
}

double normal_distribution(double x) {
  return std::erfc(-x * kHalfRoot) / 2;
}

double normal_density(double x) {
  return std::exp(-x * x / 2) * std::numbers::inv_sqrtpi * kHalfRoot;
}

}  // namespace

std::string same_shape(Layer& layer, std::vector<Parameter>&) {
  layer.out = layer.in;
  return {};
}

std::string flatten_shape(Layer& layer, std::vector<Parameter>&) {
  layer.out.extents = {static_cast<std::int64_t>(layer.in.size())};
  return {};
}

void relu_forward(LayerPass& pass) {
  map_forward(pass, [](double x) { return x > 0 ? x : 0; });
}
void relu_backward(LayerPass& pass) {
  map_backward(pass, [](double x, double) { return x > 0 ? 1.0 : 0.0; });
}

void tanh_forward(LayerPass& pass) {
  if (pass.arithmetic == Arithmetic::flow) {
    return add_forward(pass);
  }
  map_forward(pass, [](double x) { return std::tanh(x); });
}
void tanh_backward(LayerPass& pass) {
  if (pass.arithmetic == Arithmetic::flow) {
    return add_backward(pass);
  }
  map_backward(pass, [](double, double y) { return 1 - y * y; });
}

void gelu_forward(LayerPass& pass) {
  if (pass.arithmetic == Arithmetic::flow) {
    return add_forward(pass);
  }
  map_forward(pass, [](double x) { return x * normal_distribution(x); });
}
void gelu_backward(LayerPass& pass) {
  if (pass.arithmetic == Arithmetic::flow) {
    return add_backward(pass);
  }
  map_backward(pass,
               [](double x, double) { return normal_distribution(x) + x * normal_density(x); });
}

void add_forward(LayerPass& pass) {
  for (const double* const input : pass.inputs) {
    for (std::size_t i = 0; i < elements_of(pass); ++i) {
      pass.output[i] += input[i];
    }
  }
}
void add_backward(LayerPass& pass) {
  for (double* const input : pass.input_gradients) {
    for (std::size_t i = 0; i < elements_of(pass); ++i) {
      input[i] += pass.output_gradient[i];
    }
  }
}

void zero_forward(LayerPass&) {}
void zero_backward(LayerPass&) {}

}  // namespace orrery::neural
