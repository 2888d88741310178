// SPDX-License-Identifier: Apache-2.0
/// Cells in the style of NAS-Bench-201: four nodes, an operation on each of the six edges.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/names.h"
#include "neural/build_network.h"
#include "neural/network.h"

namespace orrery::neural {

enum class EdgeOperation : std::uint8_t { none, skip, conv1x1, conv3x3, average_pool };
constexpr auto named_values(EdgeOperation) {
  return std::to_array<Named<EdgeOperation>>({
      {EdgeOperation::none, "none", "no connection"},
      {EdgeOperation::skip, "skip", "the node as it is"},
      {EdgeOperation::conv1x1, "conv1x1", "ReLU, convolution of kernel 1, batch norm"},
      {EdgeOperation::conv3x3, "conv3x3", "ReLU, convolution of kernel 3, batch norm"},
      {EdgeOperation::average_pool, "average_pool", "mean of 3 x 3"},
  });
}

/// Operations on the edges 0-1, 0-2, 1-2, 0-3, 1-3, 2-3; node 0 is the input, node 3 the output,
/// every other node the sum over its edges.
/// Source: Dong & Yang, NAS-Bench-201, ICLR 2020.
inline constexpr std::size_t kEdges = 6;
using Cell = std::array<EdgeOperation, kEdges>;

/// Adds the cell's layers, whose input is the layer before; its output is the last of them.
/// Requires an image of `channels` channels there.
void add_cell(NetworkBuilder& builder, const std::string& name, std::int64_t channels,
              const Cell& cell);

struct CellSpace {
  Shape input;
  std::int64_t classes = 0;
  std::vector<std::int64_t> stages{};  ///< channels
  std::int64_t count = 0;
  std::uint64_t seed = 1;
};

/// Returns the network: a convolution of kernel 3 with batch norm, for every stage the cell,
/// between stages ReLU, convolution of stride 2 and batch norm; ReLU, mean over the image, linear.
Network network_of(const CellSpace& space, const std::string& name, const Cell& cell);

/// `count` different cells, drawn evenly. Requires count <= 5^6 = 15,625.
std::vector<Cell> draw_cells(const CellSpace& space);

}  // namespace orrery::neural
