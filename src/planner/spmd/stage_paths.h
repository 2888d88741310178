// SPDX-License-Identifier: Apache-2.0
/// All beginnings of a stage that starts in one state: after one node, two, ... up to the longest.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/spmd/compiled_graph.h"
#include "planner/spmd/strategy.h"

namespace orrery::spmd {

/// One beginning of a stage, up to some node.
struct Path {
  Key key;  ///< after that node
  StageWork work{};
  int parent = -1;             ///< of the paths one node shorter
  std::int16_t signature = 0;  ///< of the node's compiled ones
  bool communicated = false;
  /// Holds 4 bits by input of the node: the code of the form that an undecided one was loaded in,
  /// or that one was converted from; 15: neither.
  std::uint64_t forms = 0;
};

/// Replaces `longer` by all ways to add `node` to the paths of `shorter`, which have `length`
/// nodes. Of ways that end in the same state and do the same otherwise, those that another stands
/// for are left out.
void add_node(const CompiledGraph& graph, const StageRule& rule, int node, int length,
              const std::vector<Path>& shorter, std::vector<Path>& longer);

}  // namespace orrery::spmd
