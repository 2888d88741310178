// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "calibrate/replay.h"
#include "report/fields.h"

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

/// Returns the step as measured and as simulated before and after the fit, and the errors of each
/// sort of kernel and exchange.
std::string replay_table(const Replay& replay);

/// Declares docs/schema/replay.json.
void declare(const Replay& replay, Fields& fields);

}  // namespace orrery::report
