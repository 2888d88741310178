// SPDX-License-Identifier: Apache-2.0
/// Says which prediction answers which call, of one program. Private to mpi_calls.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "mpi_calls/score.h"

namespace orrery::mpi_calls {

struct Outcome {
  std::string name;
  bool located = false;
  bool named = false;
  std::optional<double> args{};  ///< of named ones
};

/// A Matching says, of one program, what became of each call, and the names of all predictions,
/// with which of them answer a call of their name.
struct Matching {
  std::vector<Outcome> calls;
  std::vector<std::pair<std::string, bool>> predictions;
};

Matching match_strictly(const Record& truth, const Record& predicted, const ScoreOptions& options);
Matching match_as_mpirigen(const Record& truth, const Record& predicted,
                           const ScoreOptions& options);

bool is_common_core(const std::string& function);

}  // namespace orrery::mpi_calls
