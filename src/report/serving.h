// SPDX-License-Identifier: Apache-2.0
/// A served run in the forms in which people and programs read it.
#pragma once

#include <string>

#include "serving/metrics.h"
#include "serving/search.h"

namespace orrery::report {

/// Returns what a search for the largest rate that keeps `limits` has found, before the run's text.
std::string rate_headline(const serving::RateFound& found, const std::string& limits);
/// The block that `vllm bench serve` prints, and below it what that does not know. `unfused`: of
/// an engine that fuses communication, the same requests without.
std::string serving_text(const serving::Run& run, const serving::Metrics& metrics,
                         const serving::Metrics* unfused = nullptr);

/// One JSON object: model, machine, devices, engine, requests, refused, rejected, replicas,
/// prefill, kv_blocks, duration_s, requests_per_s, output_tokens_per_s, total_tokens_per_s,
/// output_tokens_per_s_per_device, output_tokens_per_s_per_user, ttft_s, tpot_s, itl_s, e2e_s,
/// queue_s, moved_s of prefill pools (each mean, median, std, p90, p95, p99), moved_bytes of these,
/// preemptions, cached_tokens, lost_tokens, drafted_tokens and accepted_tokens of speculation,
/// steps, mean_kv_use, peak_kv_use, peak_running, weights_bytes, kv_bytes_per_token, energy_j,
/// power_w (of all devices), energy_per_output_token_j, output_tokens_per_j and
/// cost_per_million_tokens where known, wall_s; of an engine that fuses communication `fused`, a
/// list of places of a step of max_num_batched_tokens (pair, places, before, after, time_before_s,
/// time_after_s, reason), and of `unfused` the mean ttft_s, tpot_s, e2e_s and output_tokens_per_s.
std::string serving_json(const serving::Run& run, const serving::Metrics& metrics,
                         const serving::Metrics* unfused = nullptr);
/// The same keys, joined with dots, as one header line and one line of values.
std::string serving_csv(const serving::Run& run, const serving::Metrics& metrics);

/// A row per request: request, input_tokens, output_tokens, sent_s, queued_s, scheduled_s,
/// first_token_s, last_token_s, ttft_s, tpot_s, e2e_s, cached_tokens, preemptions, moved_s.
std::string serving_requests_csv(const serving::Run& run);

/// Every field of an engine, in its file's sections.
std::string engine_json(const serving::Engine& engine, bool of_checkpoint = false);

/// Steps as spans and samples as counters, for Perfetto.
std::string serving_trace(const serving::Run& run);

}  // namespace orrery::report
