// SPDX-License-Identifier: Apache-2.0
/// Statistics of a served run, as `vllm bench serve` defines them: TTFT = first token - sent,
/// TPOT = (last - first) / (output - 1) per request of more than one token, ITL = all gaps between
/// tokens pooled, E2EL = last - sent. Rates are over the run, from the first request sent to the
/// last token. The client's clock: the front end counts.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "serving/serve.h"

namespace orrery::serving {

/// Percentiles interpolate linearly between ranks (numpy's default).
struct Statistics {
  Time mean{0};
  Time median{0};
  Time deviation{0};
  Time p90{0};
  Time p95{0};
  Time p99{0};
};
Statistics statistics(std::vector<Time> values);
Statistics statistics(std::vector<Gap> gaps);
/// Requires values sorted, share in [0, 1].
Time percentile(const std::vector<Time>& sorted, double share);

/// Largest allowed values; Time::max(): no limit.
struct Objectives {
  Time ttft = Time::max();
  Time tpot = Time::max();
  Time e2e = Time::max();
};

struct Metrics {
  std::int64_t completed = 0;
  std::int64_t input_tokens = 0;
  std::int64_t output_tokens = 0;
  Time duration{0};
  double requests_per_s = 0;
  double output_tokens_per_s = 0;
  double total_tokens_per_s = 0;
  double output_tokens_per_s_per_device = 0;
  double output_tokens_per_s_per_user = 0;  ///< 1 / mean TPOT
  double peak_running = 0;                  ///< of an engine's steps and of the samples
  double mean_kv_use = 0;                   ///< over the duration
  double peak_tokens_per_s = 0;             ///< of the seconds from the first request sent on
  std::int64_t peak_concurrent = 0;         ///< requests sent and not answered
  std::optional<double> goodput;            ///< requests per second that keep the objectives
  Statistics ttft;
  Statistics tpot;
  Statistics itl;
  Statistics e2e;
  Statistics queue;  ///< queued to scheduled
  Statistics moved;  ///< of requests that decode elsewhere than where their prompts are computed
  std::optional<Energy> energy;
  std::optional<Money> cost_per_million_tokens;
};
/// Returns the measures of a run. Energy: devices x (that of the steps, by the power of their
/// kernels (compute/clock.h), and idle power between them); cost: devices x price over output
/// tokens; of a fleet that scales, the devices held on the mean. Energy and cost are missing where
/// the machine does not state them.
Metrics metrics(const Run& run, const machine::Machine& machine,
                const Objectives* objectives = nullptr);

/// Returns the energy over duration, of all devices. Requires an energy.
Power mean_power(const Metrics& metrics);

/// Reads "ttft=500ms,tpot=30ms".
tl::expected<Objectives, std::string> parse_objectives(std::string_view text);
/// Returns the share of all requests (also refused and rejected ones) that keep every limit. TPOT
/// of one token is 0.
double attainment(const Run& run, const Objectives& objectives);

}  // namespace orrery::serving
