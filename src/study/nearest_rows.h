// SPDX-License-Identifier: Apache-2.0
/// Published runs that are nearest to a run, with the error of their prediction: how far the
/// figures of the run may be trusted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "study/run.h"

namespace orrery::study {

struct NearestRow {
  std::string table;
  std::string key;      ///< of the row
  std::string model;    ///< name
  std::string machine;  ///< name
  std::string measure;  ///< what is predicted, as named_values(Measure) names it
  std::int64_t devices = 0;
  double predicted = 0;
  double published = 0;
  double error = 0;  ///< predicted / published - 1
};

/// Returns the `most` rows of the shipped tables of training steps on devices of the run's sort
/// whose distance is least, the nearest first; none where no table has such devices.
///
///   distance = |log2(parameters / the run's)| + |log2(devices / the run's)|
///
/// In a table with many rows those whose cells name the run's model are looked at, and some at
/// equal distances in the table (kLooked in all), so that a report takes no second longer. Rows
/// that cannot be read or run are left out. A row is predicted as `orrery validate` predicts it.
std::vector<NearestRow> nearest_rows(const Run& run, std::size_t most);

inline constexpr std::size_t kLooked = 16;

}  // namespace orrery::study
