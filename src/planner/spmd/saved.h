// SPDX-License-Identifier: Apache-2.0
/// Programs as `orrery spmd --save` writes them, of devices as one axis or as a mesh.
#pragma once

#include <cstdint>
#include <string>
#include <variant>

#include "base/result.h"
#include "graph/workload.h"
#include "machine/machine.h"
#include "planner/spmd/memory.h"
#include "planner/spmd/mesh_strategy.h"
#include "planner/spmd/operator_graph.h"
#include "planner/spmd/stage.h"
#include "planner/spmd/strategy.h"

namespace orrery::spmd {

inline constexpr std::string_view kMeshStrategyFormat = "spmd-mesh-strategy/1";

struct SavedMesh {
  Mesh mesh{1, 1, 1};
  Overlap overlap = Overlap::none;
  MeshStrategy strategy{};
};

using SavedStrategy = std::variant<Strategy, SavedMesh>;

/// Loads a strategy by its format: "spmd-strategy/1" (strategy.h) or "spmd-mesh-strategy/1": {mesh:
/// [8, 4], overlap: both, computations: [{node, signatures: [inner, outer], conversions: [{tensor,
/// from: "full x gather_0", steps: [{group, from, to}]}]}]}, of three axes three of each, beside
/// what it was made for.
Result<SavedStrategy> load_saved(const std::string& file);

/// Returns whether the graph must be that of a mesh (DecoderSize::mesh).
inline bool is_of_mesh(const SavedStrategy& saved) {
  return std::holds_alternative<SavedMesh>(saved);
}

/// Returns the number of devices of a mesh; else what the caller says.
std::int64_t devices_of(const SavedStrategy& saved, std::int64_t otherwise);

struct SavedProgram {
  graph::Workload workload;
  Holdings holdings{};  ///< of a device, everything kept
};

/// Returns the program of a strategy on a machine; a mesh has its own overlap. Mistakes: those of
/// the prices and of program_of(); devices that are not those of the mesh.
Result<SavedProgram> program_of(const OperatorGraph& graph, const SavedStrategy& saved,
                                const machine::Machine& machine, std::int64_t devices,
                                Overlap overlap);

}  // namespace orrery::spmd
