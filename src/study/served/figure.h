// SPDX-License-Identifier: Apache-2.0
/// Figures of a served run as tables publish them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "serving/metrics.h"
#include "study/profile.h"

namespace orrery::served {

/// The measure of a served run, in its unit; 0 where the run has none (power of a machine without).
///
///   steady_tokens_per_s   of the tokens of each answer, equally spread between its first and last,
///                         those in the steady window over its length: of N requests and B seats
///                         (of the client, else of the engine) from the B-th first token to the
///                         end of the (N - B - 1)-th answer (ml-energy/benchmark). Without such a
///                         window: of the whole run
///   power_w               energy in the steady window, between samples of a second, over time; of
///                         a fleet, or shorter: of the whole run
///   kv_tokens             KV blocks x tokens of one, of all copies (dp) of an engine
///
/// Requires `run` to be that of `metrics`, and `idle` the device's power without work.
double value_of_measure(study::Measure measure, const serving::Run& run,
                        const serving::Metrics& metrics, Power idle);

/// Returns bytes as a row states them.
double gib_of(Bytes bytes);

/// Returns the metric that the measure is one of: tpot, ttft, tokens_s, power_w, j_per_token,
/// kv_tokens; the measure's own name for others.
std::string metric_of(study::Measure measure);

/// Statistics by the names that tables give them.
std::vector<std::pair<const char*, Time>> listed(const serving::Statistics& statistics);

/// Statistics of TTFT, TPOT and latency on the engine's clock (from queued), milliseconds.
std::vector<double> predicted_statistics(const serving::Run& run);

}  // namespace orrery::served
