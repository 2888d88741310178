// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "study/workload_run.h"

namespace orrery::report {

/// Says how exact recorders are: times of messages are multiplied by exp(sigma * a normal number);
/// and how long they live.
struct Measurement {
  double sigma = 0;
  std::uint64_t seed = 0;
  std::map<std::int64_t, Time> gone_since{};  ///< ranks that never come back
};

/// Returns what the ranks of a simulated run would have recorded, as `orrery diagnose` reads it
/// (one JSON object per line, diagnose/telemetry.h): communicators, collectives from a rank's entry
/// to their end, messages with the dimension, or the number of links, that they cross as their
/// path, and until when was recorded: the end of the run; of one that stopped a minute later; of a
/// rank that is gone when it went.
///
/// Requires a run with record_spans. Without record_messages the messages are those between ranks,
/// not those of collectives.
std::string telemetry_text(const study::WorkloadRun& run, const Measurement& measurement);

}  // namespace orrery::report
