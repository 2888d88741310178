// SPDX-License-Identifier: Apache-2.0
/// A table of published results that another file completes (Join of profile.h).
#pragma once

#include "base/csv.h"
#include "base/result.h"
#include "study/profile.h"

namespace orrery::study {

/// Returns the table with the columns of the join's file that it lacks; a row without partner has
/// them empty. Mistakes: those of reading the file.
Result<CsvTable> joined(CsvTable table, const Join& join);

}  // namespace orrery::study
