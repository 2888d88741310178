// SPDX-License-Identifier: Apache-2.0
/// These functions return Page::extra of each kind of result: figures need it, --json lacks it.
#pragma once

#include <string>

#include "serving/serve.h"
#include "study/workload_run.h"

namespace orrery::web {

/// Returns {"timeline"} of a run with record_spans (timeline.h).
std::string run_extra(const study::WorkloadRun& run);

/// Returns {"histograms": [{name, from, width, counts}]}: times to the first token, per further
/// token and to the last of all requests in 30 parts of equal width (seconds). Of no requests none.
std::string serving_extra(const serving::Run& run);

}  // namespace orrery::web
