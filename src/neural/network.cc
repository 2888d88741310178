// SPDX-License-Identifier: Apache-2.0
#include "neural/network.h"

#include <fmt/format.h>

#include "base/lists.h"

namespace orrery::neural {

std::string to_string(const Shape& shape) {
  return joined(shape.extents, " x ");
}

double forward_flops(const Network& network) {
  double flops = 0;
  for (const Layer& layer : network.layers) {
    const std::size_t positions =
        layer.kind == LayerKind::convolution ? layer.out.at(1) * layer.out.at(2) : layer.out.rows();
    for (std::size_t i = 0; i < layer.parameters; ++i) {
      const Parameter& parameter = network.parameters[layer.first_parameter + i];
      flops += parameter.matrix ? 2.0 * static_cast<double>(parameter.size() * positions) : 0;
    }
    if (layer.kind == LayerKind::attention) {  // scores and mixed values
      flops += 4.0 * static_cast<double>(layer.in.at(0) * layer.in.size());
    }
  }
  return flops;
}

}  // namespace orrery::neural
