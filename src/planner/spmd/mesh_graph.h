// SPDX-License-Identifier: Apache-2.0
/// An operator graph as the search on a mesh wants it: live tensors in slots, for every node its
/// choices with what they need and cost.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "base/result.h"
#include "planner/spmd/compiled_graph.h"
#include "planner/spmd/mesh_chains.h"

namespace orrery::spmd {

inline constexpr int kMeshSlots = 16;
/// Forms of live tensors by slot, as FormSets numbers them; 0: no tensor.
using MeshState = std::array<FormSets::Id, kMeshSlots>;

/// One signature for each axis of a node.
struct MeshChoice {
  std::array<int, kAxes> signatures{};
  Time cost{0};              ///< of computing, and of its loads in the cheapest forms
  std::vector<int> needs;    ///< codes of the inputs that have slots
  std::vector<int> made;     ///< codes of the outputs that have slots
  std::vector<int> outputs;  ///< codes in which they are kept: of one use those needed there
  std::vector<int> loads;    ///< codes in which the other inputs are loaded
  friend bool operator==(const MeshChoice&, const MeshChoice&) = default;
};

/// A MeshJoint is what one later node alone uses: slots, and the codes that it needs together.
struct MeshJoint {
  std::vector<int> slots;
  std::vector<std::vector<int>> codes;  ///< ascending
  friend bool operator==(const MeshJoint&, const MeshJoint&) = default;
};

/// Equal nodes have equal values, but for the tensors' numbers.
struct MeshNode {
  std::vector<int> inputs;   ///< slots
  std::vector<int> outputs;  ///< slots
  std::vector<char> once;    ///< by input: whether it is in the one form that its one use needs
  std::vector<MeshJoint> joints;
  std::vector<int> dead;  ///< slots whose tensors nothing uses later
  std::vector<MeshChoice> choices;
  /// The choices by the forms in which they need the inputs of one use.
  std::map<std::vector<int>, std::vector<int>> choices_by_need;
  /// The chains, after the node, of the tensor in each slot; -1: none, or one that is converted
  /// already.
  std::array<int, kMeshSlots> chains{};
  friend bool operator==(const MeshNode&, const MeshNode&) = default;
};

struct MeshGraph {
  Mesh mesh{1, 1, 1};
  std::vector<MeshChains> chains;
  std::vector<MeshNode> distinct;
  std::vector<int> nodes;                      ///< index into distinct
  std::vector<std::vector<int>> slot_tensors;  ///< by node, of its inputs with slots
  std::vector<std::vector<int>> load_tensors;  ///< by node, of the others
  std::vector<int> chains_of;                  ///< by tensor
  std::vector<char> used;                      ///< by tensor: whether a node does
  Repeats repeats;

  const MeshNode& node(int i) const {
    return distinct[static_cast<std::size_t>(nodes[static_cast<std::size_t>(i)])];
  }
  bool is_used(int tensor) const { return used[static_cast<std::size_t>(tensor)] != 0; }
  const MeshChains& of(int tensor) const {
    return chains[static_cast<std::size_t>(chains_of[static_cast<std::size_t>(tensor)])];
  }
};

/// Mistakes: those of search_mesh() but for the last two.
Result<MeshGraph> compile_mesh(const OperatorGraph& graph, const MeshPrices& prices,
                               const Restriction& allowed, const MeshWeights& weights = {});

}  // namespace orrery::spmd
