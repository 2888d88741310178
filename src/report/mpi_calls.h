// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "mpi_calls/check.h"
#include "mpi_calls/learned.h"
#include "mpi_calls/record.h"
#include "mpi_calls/score.h"
#include "report/fields.h"

namespace orrery::report {

/// Returns a JSON object: program, code, mpi_labels and, where the record has some, places. Several
/// records: an object per line.
std::string records_json(const std::vector<mpi_calls::Record>& records);

/// Returns an object of kind, threshold, programs: what mpi_calls::load_model reads.
std::string model_json(const mpi_calls::Model& model);

/// Declares docs/schema/mpi-score.json.
void declare(const mpi_calls::Score& score, const mpi_calls::ScoreOptions& options, Fields& fields);
std::string score_table(const mpi_calls::Score& score, const mpi_calls::ScoreOptions& options);

/// Declares docs/schema/mpi-train.json: the rules and what was learned, side by side.
void declare(const mpi_calls::Training& training, const mpi_calls::Score& rules,
             const mpi_calls::Score& learned, Fields& fields);
std::string training_table(const mpi_calls::Training& training, const mpi_calls::Score& rules,
                           const mpi_calls::Score& learned);

/// Declares docs/schema/mpi-check.json.
void declare(const std::vector<mpi_calls::CheckRow>& rows, Fields& fields);
std::string check_table(const std::vector<mpi_calls::CheckRow>& rows);

}  // namespace orrery::report
