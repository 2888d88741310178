// SPDX-License-Identifier: Apache-2.0
/// Checksums of a store: of every row of its tables, and of its head and schema.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "study/sweep/cell.h"
#include "study/sweep/database.h"

namespace orrery::sweep {

/// Appends the checksum of all the cells so far: input_hash() of their types, lengths and texts.
std::vector<Cell> with_checksum(std::vector<Cell> row);

/// Returns the checksum of the head, but for its own row, and of the schema.
Result<std::string> head_checksum(Database& database);

/// Returns whether a store has checksums; one of a program that wrote none has not.
Result<bool> has_checksums(Database& database);

/// Recomputes the checksums of a store that has them. Mistakes: what is not as it was written.
Result<void> verify_store(Database& database);

}  // namespace orrery::sweep
