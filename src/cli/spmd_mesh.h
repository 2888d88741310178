// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "machine/machine.h"
#include "planner/spmd/fixed.h"
#include "planner/spmd/mesh.h"
#include "planner/spmd/operator_graph.h"
#include "report/spmd_mesh.h"

namespace orrery::cli {

/// Reads "8x4" or "8x4x2": neighbours, groups of them, groups of those.
Result<spmd::Mesh> parse_mesh(const std::string& text);

/// A MeshQuestion is what is asked of a mesh.
struct MeshQuestion {
  spmd::Mesh mesh{1, 1, 1};
  spmd::Overlap overlap = spmd::Overlap::none;
  std::optional<spmd::FixedStrategy> fixed{};  ///< of a well-known kind on each axis
  std::optional<Bytes> limit{};                ///< of memory
  std::int64_t states = 0;                     ///< kept at a cut; 0: as many as by default
  bool frontier = false;
};

/// Returns the fastest program, its cost and its time on the simulator.
Result<report::MeshRun> solve_spmd_mesh(spmd::OperatorGraph graph, const MeshQuestion& question,
                                        const machine::Machine& machine);

}  // namespace orrery::cli
