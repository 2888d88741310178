// SPDX-License-Identifier: Apache-2.0
/// `orrery spmd --mesh` prints and saves these texts.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planner/spmd/mesh_limits.h"
#include "report/fields.h"

namespace orrery::report {

struct MeshRun {
  spmd::OperatorGraph graph;
  spmd::Mesh mesh{1, 1, 1};
  spmd::Overlap overlap = spmd::Overlap::none;
  std::string machine;
  graph::DataType type{};  ///< in which it computes
  spmd::MeshSolution solution{};
  spmd::MeshCost cost{};
  Time simulated{0};
  std::optional<Bytes> limit;               ///< of memory
  Time bound{0};                            ///< no program within the limit is faster
  std::int64_t states = 0;                  ///< kept at a cut at the most
  std::vector<spmd::MeshPoint> frontier{};  ///< time against memory; empty: not asked for
  double search_seconds = 0;                ///< wall clock
};

/// Returns text for a terminal: the time and where it goes, what is converted, the program.
std::string mesh_table(const MeshRun& run);
/// Declares docs/schema/spmd-mesh.json.
void declare(const MeshRun& run, Fields& fields);
/// Returns the strategy, as load_saved() (planner/spmd/saved.h) reads it.
std::string mesh_strategy_json(const MeshRun& run);

}  // namespace orrery::report
