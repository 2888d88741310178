// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"
#include "planner/spmd/prices.h"
#include "report/spmd.h"
#include "report/spmd_mesh.h"

namespace orrery::cli {

/// Returns whether --save names a plan: NAME.yaml or NAME.yml.
bool is_plan_file(const std::string& file);

/// Returns where --save writes the strategy: of a plan beside it, else the file itself.
std::string strategy_file(const std::string& file);

/// Saves the strategy as a plan of its model (Plan::strategy), and beside the file NAME.json with
/// the strategy itself. Mistakes: a graph that is not of a whole model of the zoo, prices or an
/// overlap that such a plan does not have.
Result<void> save_spmd_plan(const report::SpmdRun& run, const spmd::Prices* prices,
                            const std::string& file);
/// Saves the same of a program on a mesh. Mistakes: a graph that is not of a whole model of the
/// zoo.
Result<void> save_mesh_plan(const report::MeshRun& run, const std::string& file);

}  // namespace orrery::cli
