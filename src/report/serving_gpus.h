// SPDX-License-Identifier: Apache-2.0
/// A search for the fewest devices in the forms in which people and programs read it.
#pragma once

#include <string>

#include "serving/gpu_search.h"

namespace orrery::report {

/// Returns the fewest devices and cheapest machine first, then the best of each machine and format,
/// why others lose, and launch lines of the first for vLLM, SGLang and trtllm-serve.
std::string serving_gpus_text(const serving::GpusFound& found, const std::string& model,
                              const serving::PlanSearch& search);

/// Returns one JSON object: search ("gpus"), model, rate, fewest and cheapest (missing without
/// prices; objects of machine, format, tp, dp, ep, replicas, gpus, usd_per_hour (0: unknown),
/// attainment, ttft_p99_s, tpot_p99_s, output_tokens_per_s, cost_per_million_tokens where known,
/// launch: {vllm, sglang, trtllm}), choices, losers (machine, format, tp, reason), runs, timing
/// {wall_s}.
std::string serving_gpus_json(const serving::GpusFound& found, const std::string& model,
                              const serving::PlanSearch& search);
/// Returns the choices, one per line under the names of JSON.
std::string serving_gpus_csv(const serving::GpusFound& found);

}  // namespace orrery::report
