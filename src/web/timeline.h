// SPDX-License-Identifier: Apache-2.0
/// A page shows a run in time by its spans, few enough to be drawn.
#pragma once

#include <cstddef>

#include "report/json_writer.h"
#include "study/workload_run.h"

namespace orrery::web {

struct TimelineLimits {
  std::size_t spans = 20'000;
  std::size_t ranks = 32;  ///< classes of ranks
};

/// Writes one object of a run with record_spans:
///
///   end         nanoseconds until the last span is over
///   lanes       [{rank, like, stream, of}]: a stream of a rank that stands for `like` simulated
///               ranks which do the same at the same times; `of`: spans of the run in it
///   categories  phases of kernels, groups of communication
///   names       of nodes
///   spans       [[lane, begin, length, name, category, count]], ns, indices of the tables
///   note        what is left out or put together
///
/// Where spans exceed the limit, those that begin in the same part of a lane's time are one, from
/// the begin of the first to the end of the last, named after the longest. Of more classes of ranks
/// the critical rank's, the first and evenly many of the others are shown.
void write_timeline(const study::WorkloadRun& run, report::JsonWriter& json,
                    const TimelineLimits& limits = {});

}  // namespace orrery::web
