// SPDX-License-Identifier: Apache-2.0
/// Dumps of PyTorch's NCCL flight recorder: one file per rank, a pickled or JSON dictionary of
/// `entries` (collectives: process_group, collective_seq_id, profiling_name, state, times in
/// nanoseconds, sizes and types) and `pg_config` (process groups and their ranks). Source: the
/// recorder's documentation, "PyTorch Flight Recorder for debugging stuck jobs", version 2.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "diagnose/collector.h"

namespace orrery::diagnose {

/// Returns whether a file's text may be such a dump.
bool is_flight_record(std::string_view text);

/// Adds its collectives; messages between two ranks are left out. An operation begins when its
/// start was discovered, if it was, or when it was created, and lasts for duration_ms, if given, or
/// until its end was discovered. Mistakes: not readable, no rank in the file's name, fields
/// missing.
Result<void> read_flight_record(const std::string& text, const std::string& file,
                                Collector& collector);

}  // namespace orrery::diagnose
