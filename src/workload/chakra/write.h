// SPDX-License-Identifier: Apache-2.0
/// TraceSet -> files. What load() reads from them is equal to what was written.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/result.h"
#include "workload/chakra/trace.h"

namespace orrery::chakra {

/// Returns the `.et` file of `rank`, schema 0.0.4. Durations are whole microseconds there and
/// rounded to the nearest, operations whole numbers. Attributes have the types that Chakra's
/// converters give them; dependencies are data_deps.
std::string et_bytes(const TraceSet& traces, std::int64_t rank);

/// Returns {"1": [0, 1], "2": [2, 3]}: every group but the world.
std::string groups_json(const TraceSet& traces);

struct WriteOptions {
  std::string prefix;  ///< PREFIX.<rank>.et and, if there are groups, PREFIX.groups.json
  std::int64_t most_files = 4096;
  std::function<void(double)> progress;
};

/// Writes each file whole or not at all. Mistakes: more ranks than most_files; groups whose names
/// are not whole numbers above 0, or that two have, which the file of groups cannot say; a file
/// that cannot be written.
Result<void> write_traces(const TraceSet& traces, const WriteOptions& options);

}  // namespace orrery::chakra
