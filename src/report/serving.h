// SPDX-License-Identifier: Apache-2.0
/// A served run in the forms in which people and programs read it.
#pragma once

#include <string>

#include "machine/machine.h"
#include "report/fields.h"
#include "serving/metrics.h"
#include "serving/search.h"

namespace orrery::report {

/// Returns what a search for the largest rate that keeps `limits` has found, before the run's text.
std::string rate_headline(const serving::RateFound& found, const std::string& limits);
/// Returns the block that `vllm bench serve` prints, and below it what that does not know.
/// `unfused`: of an engine that fuses communication, the same requests without.
std::string serving_text(const serving::Run& run, const serving::Metrics& metrics,
                         const serving::Metrics* unfused = nullptr);

/// Declares docs/schema/serve.json. May be null: `unfused` (the same requests without fused
/// communication) and `machine` (then nothing says how far the run can be trusted).
void declare(const serving::Run& run, const serving::Metrics& metrics,
             const serving::Metrics* unfused, const machine::Machine* machine, Fields& fields);
/// Returns the same keys, joined with dots, as one header line and one line of values.
std::string serving_csv(const serving::Run& run, const serving::Metrics& metrics);

/// Returns a row per request: request, input_tokens, output_tokens, sent_s, queued_s, scheduled_s,
/// first_token_s, last_token_s, ttft_s, tpot_s, e2e_s, cached_tokens, preemptions, moved_s.
std::string serving_requests_csv(const serving::Run& run);

/// Returns every field of an engine, in its file's sections.
std::string engine_json(const serving::Engine& engine, bool of_checkpoint = false);

/// Returns the steps as spans and samples as counters, for Perfetto.
std::string serving_trace(const serving::Run& run);

}  // namespace orrery::report
