// SPDX-License-Identifier: Apache-2.0
#include "planner/spmd/mesh_ways.h"

#include <algorithm>
#include <utility>

#include "planner/spmd/mesh_strategy.h"
#include "planner/spmd/signatures.h"

namespace orrery::spmd {
namespace {

struct Sort {
  Node node;                   ///< without a name, sorts of tensors for tensors
  std::vector<int> allowed{};  ///< signatures
  friend bool operator==(const Sort&, const Sort&) = default;
};

Sort sort_of_node(const OperatorGraph& graph, int i, const Restriction& allowed,
                  const std::vector<int>& tensors) {
  Sort sort{.node = graph.node(i)};
  for (int s = 0; s < static_cast<int>(sort.node.signatures.size()); ++s) {
    const Signature& signature = sort.node.signatures[static_cast<std::size_t>(s)];
    if ((!allowed || allowed(sort.node, signature)) && is_sound(sort.node.op, signature)) {
      sort.allowed.push_back(s);
    }
  }
  sort.node.name.clear();
  for (int& tensor : sort.node.inputs) {
    const Node& producer = graph.producer(tensor);  // a mask of gating has no gradient
    const bool mask = producer.op.ends_with("_gating") && producer.outputs.front() == tensor;
    tensor = 2 * tensors[static_cast<std::size_t>(tensor)] + (mask ? 1 : 0);
  }
  for (int& tensor : sort.node.outputs) {
    tensor = tensors[static_cast<std::size_t>(tensor)];
  }
  return sort;
}

/// Adds the way of these signatures where the prices allow it.
void add_way(const OperatorGraph& graph, int i, const MeshPrices& prices, MeshWay way,
             std::vector<MeshWay>& ways) {
  way.forms = signature_of(graph, {{}, i, way.signatures}, prices.mesh());
  if (prices.allows(graph, i, way.forms)) {
    way.compute = prices.compute(graph, i, way.forms);
    ways.push_back(std::move(way));
  }
}

std::vector<MeshWay> ways_by(const OperatorGraph& graph, int i, const MeshPrices& prices,
                             const std::vector<int>& allowed) {
  std::array<std::vector<int>, kAxes> by_axis;
  for (std::size_t axis = 0; axis < kAxes; ++axis) {
    by_axis[axis] = prices.mesh()[axis] > 1 ? allowed : std::vector<int>{0};
  }
  std::vector<MeshWay> ways;
  for (const int outer : by_axis[2]) {
    for (const int middle : by_axis[1]) {
      for (const int inner : by_axis[0]) {
        add_way(graph, i, prices, MeshWay{.signatures = {inner, middle, outer}}, ways);
      }
    }
  }
  return ways;
}

}  // namespace

MeshWays::MeshWays(const OperatorGraph& graph, const MeshPrices& prices, const Restriction& allowed,
                   const std::vector<int>& tensors) {
  std::vector<Sort> sorts;
  for (int i = 0; i < static_cast<int>(graph.nodes.size()); ++i) {
    Sort sort = sort_of_node(graph, i, allowed, tensors);
    const auto same = std::ranges::find(sorts, sort);
    sort_of_.push_back(static_cast<int>(same - sorts.begin()));
    if (same == sorts.end()) {
      ways_.push_back(ways_by(graph, i, prices, sort.allowed));
      sorts.push_back(std::move(sort));
    }
  }
}

}  // namespace orrery::spmd
