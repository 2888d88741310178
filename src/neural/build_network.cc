// SPDX-License-Identifier: Apache-2.0
#include "neural/build_network.h"

#include <utility>

#include "neural/layer_pass.h"

namespace orrery::neural {

std::string NetworkBuilder::add(Layer layer) {
  if (layer.inputs.empty()) {
    layer.inputs = {last()};
  }
  layer.in = shape_of(layer.inputs.front());
  for (const int input : layer.inputs) {
    if (shape_of(input) != layer.in) {
      return "inputs of one shape, not " + to_string(layer.in) + " and " +
             to_string(shape_of(input));
    }
  }
  std::vector<Parameter> parameters;
  if (std::string wrong = row_of(layer.kind).shape(layer, parameters); !wrong.empty()) {
    return wrong + ", not " + to_string(layer.in);
  }
  layer.first_parameter = network_.parameters.size();
  layer.parameters = parameters.size();
  for (Parameter& parameter : parameters) {
    parameter.offset = network_.weights;
    network_.weights += parameter.size();
    network_.parameters.push_back(std::move(parameter));
  }
  network_.layers.push_back(std::move(layer));
  return {};
}

}  // namespace orrery::neural
