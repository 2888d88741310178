// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "report/json_writer.h"
#include "study/sweep/cell.h"

namespace orrery::report {

/// Writes a value of a row: a number or text as it is, an empty cell as null.
void write_cell(JsonWriter& json, const sweep::Cell& cell);

}  // namespace orrery::report
