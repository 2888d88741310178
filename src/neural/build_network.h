// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "neural/network.h"

namespace orrery::neural {

/// Puts a network together layer by layer: shapes and parameters follow.
class NetworkBuilder {
 public:
  NetworkBuilder(Shape input, std::int64_t classes) {
    network_.input = std::move(input);
    network_.classes = classes;
  }

  /// Adds a layer of which name, kind, inputs (none: the layer before it) and sizes are set.
  /// Returns "" or what would be right instead of the shape of its input.
  std::string add(Layer layer);
  /// Returns the layer added last, as an input of another.
  int last() const { return static_cast<int>(network_.layers.size()) - 1; }
  const Shape& shape_of(int input) const {
    return input == kNetworkInput ? network_.input
                                  : network_.layers[static_cast<std::size_t>(input)].out;
  }
  Network& network() { return network_; }

 private:
  Network network_;
};

}  // namespace orrery::neural
