// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "mpi_calls/check.h"
#include "mpi_calls/learned.h"
#include "mpi_calls/record.h"
#include "mpi_calls/score.h"

namespace orrery::report {

/// A JSON object: program, code, mpi_labels and, where the record has some, places. Several
/// records: an object per line.
std::string records_json(const std::vector<mpi_calls::Record>& records);

/// kind, threshold, programs: what mpi_calls::load_model reads.
std::string model_json(const mpi_calls::Model& model);

/// programs, location, function, args, precision, recall, f1, groups and functions: of each name,
/// truth, predicted, matched, precision, recall, f1.
std::string score_json(const mpi_calls::Score& score, const mpi_calls::ScoreOptions& options);
std::string score_table(const mpi_calls::Score& score, const mpi_calls::ScoreOptions& options);

/// The rules and what was learned, side by side.
std::string training_json(const mpi_calls::Training& training, const mpi_calls::Score& rules,
                          const mpi_calls::Score& learned);
std::string training_table(const mpi_calls::Training& training, const mpi_calls::Score& rules,
                           const mpi_calls::Score& learned);

/// rows: mpi, ranks, result, status, timing {wall_s}, output, whereabouts (rank, function, line,
/// inside).
std::string check_json(const std::vector<mpi_calls::CheckRow>& rows);
std::string check_table(const std::vector<mpi_calls::CheckRow>& rows);

}  // namespace orrery::report
