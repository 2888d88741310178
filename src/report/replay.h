// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "calibrate/replay.h"

namespace orrery::report {

/// A Replay is a run on real ranks, and what it measured.
struct Replay {
  std::string name;   ///< of the plan or trace
  std::string mpi;    ///< library
  bool blas = false;  ///< products by OpenBLAS
  std::int64_t ranks = 1;
  std::int64_t repeat = 1;
  std::int64_t exchanges = 0;  ///< of one step, all checked
  calibrate::ReplayFit fit;
};

/// The step as measured and as simulated before and after the fit, and the errors of each sort of
/// kernel and exchange.
std::string replay_table(const Replay& replay);

/// One JSON object: {name, machine, mpi, blas, ranks, repeat, exchanges, measured_s,
/// before: {step_s, error}, after: as before, classes: [{name, rows, before, after}], warnings:
/// [text]}. Errors are
/// predicted / measured - 1; those of classes are medians of its magnitude.
std::string replay_json(const Replay& replay);

}  // namespace orrery::report
