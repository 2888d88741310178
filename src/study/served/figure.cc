// SPDX-License-Identifier: Apache-2.0
#include "study/served/figure.h"

#include <algorithm>
#include <array>
#include <optional>

namespace orrery::served {
namespace {

double milliseconds(Time time) {
  return 1e3 * to_seconds(time);
}

/// The time in which as many requests run as may.
struct Window {
  Time begin{0};
  Time end{0};
};

/// Returns the window in which the run is steady; nothing if there is none.
std::optional<Window> steady_window(const serving::Run& run) {
  const std::int64_t most =
      run.max_concurrency > 0 ? run.max_concurrency : run.engine.max_num_seqs * run.engine.dp;
  const auto seats = static_cast<std::size_t>(std::max<std::int64_t>(0, most));
  if (seats == 0 || run.requests.size() < seats + 2) {
    return std::nullopt;
  }
  std::vector<Time> firsts;
  std::vector<Time> lasts;
  for (const serving::Served& request : run.requests) {
    firsts.push_back(request.first);
    lasts.push_back(request.last);
  }
  std::sort(firsts.begin(), firsts.end());
  std::sort(lasts.begin(), lasts.end());
  const Window window{firsts[seats - 1], lasts[run.requests.size() - seats - 2]};
  return window.end > window.begin ? std::optional(window) : std::nullopt;
}

double steady_rate(const serving::Run& run, const serving::Metrics& metrics) {
  const std::optional<Window> window = steady_window(run);
  if (!window) {
    return metrics.output_tokens_per_s;
  }
  double tokens = 0;
  for (const serving::Served& request : run.requests) {
    const Time from = std::max(window->begin, request.first);
    const Time to = std::min(window->end, request.last);
    if (to > from && request.output > 1) {
      tokens +=
          static_cast<double>(request.output - 1) * ((to - from) / (request.last - request.first));
    }
    tokens += request.first > window->begin && request.first <= window->end ? 1 : 0;
  }
  return tokens / to_seconds(window->end - window->begin);
}

/// Returns the power of all devices between the first and the last sample in the window.
double power_of(const serving::Run& run, const serving::Metrics& metrics, Power idle) {
  if (!metrics.energy) {
    return 0;
  }
  const serving::Sample* first = nullptr;
  const serving::Sample* last = nullptr;
  if (const auto window = steady_window(run)) {
    for (const serving::Sample& sample : run.samples) {
      if (sample.at >= window->begin && sample.at <= window->end) {
        first = first == nullptr ? &sample : first;
        last = &sample;
      }
    }
  }
  if (first == last || last->busy == first->busy) {
    return serving::mean_power(metrics).value();
  }
  const Time time = last->at - first->at;
  const Time waiting = std::max(Time(0), time - (last->busy - first->busy));
  const Energy energy = last->drawn - first->drawn + idle * waiting;
  return static_cast<double>(run.devices) * energy.value() / to_seconds(time);
}

double of_memory(study::Measure measure, const serving::Run& run) {
  const double tokens =
      static_cast<double>(run.kv_blocks) * static_cast<double>(run.engine.block_size);
  switch (measure) {
    case study::Measure::kv_tokens:
      return tokens * static_cast<double>(run.engine.dp);
    case study::Measure::kv_gib:
      return tokens * gib_of(run.cache.per_token);
    case study::Measure::weights_gib:
      return gib_of(run.weights);
    default:
      return 0;
  }
}

}  // namespace

double gib_of(Bytes bytes) {
  return static_cast<double>(bytes.value()) / (1024.0 * 1024 * 1024);
}

double value_of_measure(study::Measure measure, const serving::Run& run,
                        const serving::Metrics& metrics, Power idle) {
  using study::Measure;
  switch (measure) {
    case Measure::ttft_s:
      return to_seconds(metrics.ttft.mean);
    case Measure::ttft_ms:
      return milliseconds(metrics.ttft.mean);
    case Measure::ttft_median_ms:
      return milliseconds(metrics.ttft.median);
    case Measure::ttft_p99_ms:
      return milliseconds(metrics.ttft.p99);
    case Measure::tpot_ms:
      return milliseconds(metrics.tpot.mean);
    case Measure::tpot_median_ms:
      return milliseconds(metrics.tpot.median);
    case Measure::tpot_p99_ms:
      return milliseconds(metrics.tpot.p99);
    case Measure::itl_median_ms:
      return milliseconds(metrics.itl.median);
    case Measure::itl_p90_ms:
      return milliseconds(metrics.itl.p90);
    case Measure::itl_p99_ms:
      return milliseconds(metrics.itl.p99);
    case Measure::latency_s:
      return to_seconds(metrics.e2e.mean);
    case Measure::latency_ms:
      return milliseconds(metrics.e2e.mean);
    case Measure::duration_s:
      return to_seconds(metrics.duration);
    case Measure::output_tokens_per_s:
      return metrics.output_tokens_per_s;
    case Measure::total_tokens_per_s:
      return metrics.total_tokens_per_s;
    case Measure::steady_tokens_per_s:
      return steady_rate(run, metrics);
    case Measure::power_w:
      return power_of(run, metrics, idle);
    case Measure::j_per_token: {
      const double rate = steady_rate(run, metrics);
      return rate > 0 ? power_of(run, metrics, idle) / rate : 0;
    }
    default:
      return of_memory(measure, run);
  }
}

std::string metric_of(study::Measure measure) {
  using study::Measure;
  switch (measure) {
    case Measure::ttft_s:
    case Measure::ttft_ms:
    case Measure::ttft_median_ms:
    case Measure::ttft_p99_ms:
      return "ttft";
    case Measure::tpot_ms:
    case Measure::tpot_median_ms:
    case Measure::tpot_p99_ms:
    case Measure::itl_median_ms:
      return "tpot";
    case Measure::output_tokens_per_s:
    case Measure::total_tokens_per_s:
    case Measure::steady_tokens_per_s:
      return "tokens_s";
    default:
      return std::string(name_of(measure));
  }
}

std::vector<std::pair<const char*, Time>> listed(const serving::Statistics& s) {
  return {{"mean", s.mean}, {"median", s.median}, {"P90", s.p90}, {"P95", s.p95}, {"P99", s.p99}};
}

std::vector<double> predicted_statistics(const serving::Run& run) {
  std::array<std::vector<Time>, 3> times;
  for (const serving::Served& request : run.requests) {
    times[0].push_back(request.first - request.queued);
    times[2].push_back(request.last - request.queued);
    if (request.output > 1) {
      times[1].push_back(request.tpot());
    }
  }
  std::vector<double> values;
  for (std::vector<Time>& each : times) {
    for (const auto& [name, value] : listed(serving::statistics(std::move(each)))) {
      values.push_back(milliseconds(value));
    }
  }
  return values;
}

}  // namespace orrery::served
