// SPDX-License-Identifier: Apache-2.0
/// The ways in which each node of a graph may run on a mesh: signatures by axis that the prices and
/// the search's restriction allow, with what they take. Nodes that are alike but for names and the
/// numbers of their tensors are one sort and have them in common.
#pragma once

#include <array>
#include <vector>

#include "planner/spmd/compiled_graph.h"
#include "planner/spmd/mesh_prices.h"

namespace orrery::spmd {

struct MeshWay {
  std::array<int, kAxes> signatures{};
  MeshSignature forms{};
  Time compute{0};
};

class MeshWays {
 public:
  /// `tensors`: their sorts, equal where shape, size and kind of producer are.
  MeshWays(const OperatorGraph& graph, const MeshPrices& prices, const Restriction& allowed,
           const std::vector<int>& tensors);

  int sort_of(int node) const { return sort_of_[static_cast<std::size_t>(node)]; }
  const std::vector<MeshWay>& of(int node) const {
    return ways_[static_cast<std::size_t>(sort_of(node))];
  }

 private:
  std::vector<int> sort_of_;                ///< by node
  std::vector<std::vector<MeshWay>> ways_;  ///< by sort
};

}  // namespace orrery::spmd
