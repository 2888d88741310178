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

/// Reads "8x4": neighbours times groups of them.
Result<spmd::Mesh> parse_mesh(const std::string& text);

/// Returns the fastest program on the mesh, or of a well-known kind on each axis, its cost and its
/// time on the simulator.
Result<report::MeshRun> solve_spmd_mesh(spmd::OperatorGraph graph, const spmd::Mesh& mesh,
                                        const machine::Machine& machine,
                                        std::optional<spmd::FixedStrategy> fixed);

}  // namespace orrery::cli
