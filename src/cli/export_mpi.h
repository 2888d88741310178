// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "emit/write.h"
#include "graph/workload.h"
#include "machine/machine.h"
#include "simulate/timeline.h"
#include "workload/plan/plan.h"
#include "workload/zoo/model.h"

namespace orrery::cli {

struct MpiExport {
  zoo::Model model;
  plan::Plan plan;
  machine::Machine machine;  ///< whose simulated times give the order of calls
  std::string folder;
  std::int64_t shrink = 1;
  std::string command;  ///< as it was given, for the README
  bool json = false;
};

/// The machine of the order where none is given, which the answer says.
inline constexpr const char* kOrderMachine = "dgx-a100-80g";

/// Returns the step of a plan, of a model with that many times fewer layers, as many as the stages
/// need at least. `model` gets them, `machine` its devices and the clock of the step. Mistakes:
/// those of the plan against model and machine, too many ranks.
Result<graph::Workload> step_for_program(zoo::Model& model, const plan::Plan& plan,
                                         machine::Machine& machine, std::int64_t shrink);

/// Runs every rank of a workload for emit::program_of, on a machine of as many devices.
Result<simulate::Timeline> run_every_rank(const graph::Workload& workload,
                                          const machine::Machine& machine);

struct PlannedProgram {
  emit::Program program;
  emit::Description description;
  std::int64_t layers = 0;
};

/// Returns the program of one step. Mistakes: those of step_for_program, of sizes beyond MPI's.
Result<PlannedProgram> planned_program(const MpiExport& what);

/// Writes an MPI program of one step (emit/write.h) and returns what was written, as a table or
/// JSON. With `shrink` the model has that many times fewer layers, as many as the stages need at
/// least. Mistakes: those of the plan against model and machine, of sizes beyond MPI's, of files.
Result<std::string> export_mpi(const MpiExport& what);

}  // namespace orrery::cli
