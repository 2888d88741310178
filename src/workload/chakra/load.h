// SPDX-License-Identifier: Apache-2.0
/// Trace files -> TraceSet.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/result.h"
#include "workload/chakra/trace.h"

namespace orrery::chakra {

struct LoadOptions {
  /// PREFIX.<rank>.et for every rank, or one for all: PREFIX.all.et, PREFIX.et, or the file PREFIX.
  /// The same with .json for Chakra JSON and Kineto traces.
  std::string prefix;
  std::int64_t ranks = 1;
  std::optional<std::string> groups;  ///< {"1": [0, 1], "2": [2, 3]}: names > 0 to ranks
  std::function<void(double)> progress;
};

/// Reads one file after the other (never two open at once); files with equal bytes, and hard or
/// symbolic links to one file, are read once. Programs that are equal relative to their ranks are
/// stored once, so memory is that of the distinct programs and one file's window.
///
/// Mistakes, each with file and node: a missing rank file; a truncated or malformed record; unknown
/// node or collective types; a dependency on a node that does not exist; a cycle; a missing
/// attribute that has no default; sizes beyond 2^63; groups or peers naming ranks that do not
/// exist.
Result<TraceSet> load(const LoadOptions& options);

/// Returns the traces; a mistake of `prefix` where no node of any rank computes, copies or
/// communicates.
Result<TraceSet> with_work(TraceSet traces, const std::string& prefix);

}  // namespace orrery::chakra
