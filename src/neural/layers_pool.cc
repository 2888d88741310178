// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "neural/layer_pass.h"
#include "neural/window.h"

namespace orrery::neural {

std::string window_shape(Layer& layer, std::vector<Parameter>&) {
  if (layer.in.rank() != 3) {
    return "[channels, height, width]";
  }
  layer.out = layer.in;
  layer.out.extents[1] = (layer.in.extents[1] - 1) / layer.stride + 1;
  layer.out.extents[2] = (layer.in.extents[2] - 1) / layer.stride + 1;
  return {};
}

std::string global_pool_shape(Layer& layer, std::vector<Parameter>&) {
  if (layer.in.rank() < 2) {
    return "[channels, height, width] or [tokens, features]";
  }
  layer.out.extents = {layer.in.rank() == 3 ? layer.in.extents[0] : layer.in.extents[1]};
  return {};
}

namespace {

/// visit(channel of the batch, output position, window) for every output.
template <class Visit>
void each_window(const LayerPass& pass, const Visit& visit) {
  const std::size_t positions = pass.layer.out.at(1) * pass.layer.out.at(2);
  for (std::size_t c = 0; c < pass.samples * pass.layer.in.at(0); ++c) {
    for (std::size_t p = 0; p < positions; ++p) {
      visit(c, p, window_of(pass.layer, p));
    }
  }
}

/// visit(output, input, elements that the output is the mean of).
template <class Visit>
void each_pooled(const LayerPass& pass, const Visit& visit) {
  const Shape& shape = pass.layer.in;
  const bool image = shape.rank() == 3;
  const std::size_t width = pass.layer.out.size();
  const std::size_t positions = shape.size() / width;
  for (std::size_t i = 0; i < pass.samples * shape.size(); ++i) {
    const std::size_t sample = i / shape.size();
    const std::size_t feature = image ? i % shape.size() / positions : i % width;
    visit(sample * width + feature, i, static_cast<double>(positions));
  }
}

}  // namespace

void average_pool_forward(LayerPass& pass) {
  const std::size_t in_positions = pass.layer.in.at(1) * pass.layer.in.at(2);
  const std::size_t out_positions = pass.layer.out.at(1) * pass.layer.out.at(2);
  each_window(pass, [&](std::size_t c, std::size_t p, const Window& window) {
    double sum = 0;
    window.each(
        [&](std::size_t at, std::size_t) { sum += pass.inputs.front()[c * in_positions + at]; });
    pass.output[c * out_positions + p] = sum / static_cast<double>(window.size());
  });
}

void average_pool_backward(LayerPass& pass) {
  const std::size_t in_positions = pass.layer.in.at(1) * pass.layer.in.at(2);
  const std::size_t out_positions = pass.layer.out.at(1) * pass.layer.out.at(2);
  each_window(pass, [&](std::size_t c, std::size_t p, const Window& window) {
    const double share =
        pass.output_gradient[c * out_positions + p] / static_cast<double>(window.size());
    window.each([&](std::size_t at, std::size_t) {
      pass.input_gradients.front()[c * in_positions + at] += share;
    });
  });
}

void max_pool_forward(LayerPass& pass) {
  const std::size_t in_positions = pass.layer.in.at(1) * pass.layer.in.at(2);
  const std::size_t out_positions = pass.layer.out.at(1) * pass.layer.out.at(2);
  pass.saved.resize(pass.samples * pass.layer.out.size());
  each_window(pass, [&](std::size_t c, std::size_t p, const Window& window) {
    std::size_t best = window.first();
    const double* const channel = pass.inputs.front() + c * in_positions;
    window.each(
        [&](std::size_t at, std::size_t) { best = channel[at] > channel[best] ? at : best; });
    pass.saved[c * out_positions + p] = static_cast<double>(best);
    pass.output[c * out_positions + p] = channel[best];
  });
}

void max_pool_backward(LayerPass& pass) {
  const std::size_t in_positions = pass.layer.in.at(1) * pass.layer.in.at(2);
  const std::size_t out_positions = pass.layer.out.at(1) * pass.layer.out.at(2);
  for (std::size_t i = 0; i < pass.samples * pass.layer.out.size(); ++i) {
    const auto best = static_cast<std::size_t>(pass.saved[i]);
    pass.input_gradients.front()[i / out_positions * in_positions + best] +=
        pass.output_gradient[i];
  }
}

void global_pool_forward(LayerPass& pass) {
  each_pooled(pass, [&](std::size_t out, std::size_t in, double count) {
    pass.output[out] += pass.inputs.front()[in] / count;
  });
}

void global_pool_backward(LayerPass& pass) {
  each_pooled(pass, [&](std::size_t out, std::size_t in, double count) {
    pass.input_gradients.front()[in] += pass.output_gradient[out] / count;
  });
}

}  // namespace orrery::neural
